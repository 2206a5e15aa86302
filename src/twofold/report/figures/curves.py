"""What the curves of figures are made of: means and standard errors over the seeds of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twofold.errors import UserError
from twofold.report.cells import Cell

Array = NDArray[np.floating[Any]]

MOST_BINS = 300  # more points than these in the lowest panel would be a smear


@dataclass(frozen=True)
class Curve:
    """Mean and standard error over seeds, at the iterations that were evaluated."""

    x: Array  # iterations of the whole run, from 1
    mean: Array
    error: Array  # zero for a single run

    def between(self, first: int, last: int) -> Curve:
        kept = (first <= self.x) & (self.x <= last)
        return Curve(self.x[kept], self.mean[kept], self.error[kept])


def accuracy_curve(cell: Cell, task: int) -> Curve:
    """Of a task, which is evaluated from its start on."""
    table = np.stack([run.accuracy[:, task - 1] for run in cell.runs]).astype(float)
    evaluated = ~np.isnan(table).any(axis=0)
    values, count = table[:, evaluated], len(cell.runs)
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros_like(mean)
    return Curve(np.flatnonzero(evaluated) + 1.0, mean, error)


def projected_share(cell: Cell) -> Array:
    """The share of the runs whose gradient was projected, at every iteration."""
    flags = np.stack([run.columns["projected"] for run in cell.runs]).astype(float)
    share: Array = flags.mean(axis=0)
    return share


@dataclass(frozen=True)
class Timeline:
    """When tasks begin and end, in iterations done; from the start of the task that is shown."""

    task: int
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, cells: Sequence[Cell], task: int) -> Timeline:
        runs = [run for cell in cells for run in cell.runs]
        first = runs[0].columns["task"]
        if any(not np.array_equal(first, run.columns["task"]) for run in runs):
            found = dict.fromkeys(f"{run.config.method} {len(run.columns['task'])}" for run in runs)
            raise UserError(
                f"the runs differ in length ({', '.join(found)}): "
                "choose with --iterations or --methods"
            )
        counts = np.bincount(first.astype(int))[1:]
        if not 1 <= task <= len(counts):
            raise UserError(f"task must be from 1 to {len(counts)}, not {task}")
        ends = [int(end) for end in counts.cumsum()]
        return cls(task, [0, *ends][task - 1 : -1], ends[task - 1 :])

    @property
    def switches(self) -> list[int]:
        return self.starts[1:]

    @property
    def bin_width(self) -> int:
        iterations = self.ends[-1] - self.starts[0]
        widths = (1, 5, 20, 50, 100, 200, 500)
        return next((width for width in widths if iterations <= MOST_BINS * width), 1000)

    def bins(self) -> list[int]:
        """Edges of bins, none of which reaches over a task switch."""
        tasks = zip(self.starts, self.ends, strict=True)
        edges = [edge for start, end in tasks for edge in range(start, end, self.bin_width)]
        return [*edges, self.ends[-1]]
