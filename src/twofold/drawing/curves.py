"""Curves and timelines: means and standard errors over seeds, and when tasks begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twofold.errors import UserError
from twofold.statistics import means_and_errors

Array = NDArray[np.floating[Any]]

Task = int | Literal["mean"]  # whose accuracy is shown: one task's, or the mean over those begun

MOST_BINS = 300  # more points than these in the lowest panel would be a smear


@dataclass(frozen=True)
class Curve:
    """Mean and standard error over seeds, at the iterations that were evaluated."""

    x: Array  # iterations of the whole run, from 1
    mean: Array
    error: Array  # zero for fewer than three runs

    def between(self, first: int, last: int) -> Curve:
        kept = (first <= self.x) & (self.x <= last)
        return Curve(self.x[kept], self.mean[kept], self.error[kept])


def mean_curve(values: ArrayLike) -> Curve:
    """Return the curve of a stack of values: a row per seed, a column per iteration.

    Iterations at which any value is NaN are left out.
    """
    table = np.asarray(values, float)
    evaluated = ~np.isnan(table).any(axis=0)
    mean, error = means_and_errors(table[:, evaluated])
    return Curve(
        np.flatnonzero(evaluated) + 1.0, mean, np.zeros_like(mean) if error is None else error
    )


@dataclass(frozen=True)
class Timeline:
    """The starts and ends of tasks, in iterations done, from the first task that is shown on."""

    first: int
    starts: list[int]
    ends: list[int]
    mean: bool = False  # over tasks, instead of the first task alone

    @classmethod
    def of(cls, learned: ArrayLike, task: Task) -> Timeline:
        """Return the timeline of a run.

        learned: the task (from 1) that was being learned at each iteration.
        """
        counts = np.bincount(np.asarray(learned, int))[1:]
        ends = [int(end) for end in counts.cumsum()]
        if task == "mean":
            return cls(1, [0, *ends[:-1]], ends, mean=True)
        if not isinstance(task, int) or not 1 <= task <= len(counts):
            raise UserError(f"task must be from 1 to {len(counts)} or mean, not {task}")
        return cls(task, [0, *ends][task - 1 : -1], ends[task - 1 :])

    @property
    def subject(self) -> str:
        """The task or tasks whose accuracy is shown."""
        return "mean task" if self.mean else f"task {self.first}"

    @property
    def switches(self) -> list[int]:
        return self.starts[1:]

    @property
    def bin_width(self) -> int:
        iterations = self.ends[-1] - self.starts[0]
        widths = (1, 5, 20, 50, 100, 200, 500)
        return next((width for width in widths if iterations <= MOST_BINS * width), 1000)

    def bins(self) -> list[int]:
        """Return the edges of bins, none of which spans a task switch."""
        tasks = zip(self.starts, self.ends, strict=True)
        edges = [edge for start, end in tasks for edge in range(start, end, self.bin_width)]
        return [*edges, self.ends[-1]]
