"""The accuracies of a run over its iterations, and the gaps at its task switches.

There are T tasks. Task i ends after b_i iterations of the run. a_i(n) is the accuracy on task i
after iteration n, in percent, on the images of continual evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twofold.errors import UserError
from twofold.evaluation.metrics import minimum_accuracies
from twofold.sequence import learned_at, new_places

TOLERANCE = 1.0  # a task has recovered within this many points of its accuracy at the switch
ROUNDING = 1e-4  # accuracies are recorded in single precision


class Trajectory:
    """The accuracies of a run over its iterations.

    task: the task (from 1) that was being learned at each iteration.
    accuracy: a row per iteration and a column per task, NaN where it was not evaluated. (The last
        iteration of every task is always evaluated.)
    final: [k][i] is the accuracy on the whole test set of task i+1, after task k+1.
    lowest: the same table with the lowest accuracies so far, if these were recorded separately.
    order: what is learned at each place of the sequence, such as 1, 2, 1 if the first task returns
        (default: every task once). The column of a return repeats the column of the first visit.
    """

    def __init__(
        self,
        task: ArrayLike,
        accuracy: ArrayLike,
        final: Sequence[Sequence[float]],
        lowest: ArrayLike | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.task, self.accuracy = np.asarray(task, int), np.asarray(accuracy, float)
        self.final, self.tasks = final, self.accuracy.shape[1]
        self.lowest = self.accuracy if lowest is None else np.asarray(lowest, float)
        self.order = order
        self.places = new_places(order, self.tasks)  # of tasks that are no return, from 0

    @property
    def old(self) -> list[int]:
        """The places of tasks that are no return and have a task after them."""
        return [place for place in self.places if place < self.tasks - 1]

    @cached_property
    def minima(self) -> NDArray[np.float64]:
        return minimum_accuracies(self.task, self.lowest)[self.old]

    @cached_property
    def gaps(self) -> list[Gap]:
        return gaps(self.task, self.accuracy, order=self.order)

    @cached_property
    def complete(self) -> NDArray[np.float64]:
        """The accuracies from each task's first iteration on, interpolated linearly."""
        rows = np.arange(len(self.task))
        filled = np.full_like(self.accuracy, np.nan)
        for i, column in enumerate(self.accuracy.T):
            known, seen = np.isfinite(column), self.task > i
            if known.any():
                filled[seen, i] = np.interp(rows[seen], rows[known], column[known])
        return filled

    @property
    def columns(self) -> NDArray[np.float64]:
        """The accuracies of each task, a row per task."""
        return self.accuracy[:, self.places].T

    def of_task(self, k: int) -> NDArray[np.float64]:
        """Return a_k during task k."""
        curve: NDArray[np.float64] = self.accuracy[self.task == k, k - 1]
        return curve


@dataclass(frozen=True)
class Gap:
    """The effect of a task switch on one old task."""

    switch: int  # b_j: the iterations done when the new task began
    task: int  # the old task i, from 1
    depth: float  # points: a_i(b_j) minus the lowest accuracy from the switch on
    lowest_at: int  # iterations from the switch to the lowest accuracy; 0 if it never fell
    recovery: int | None  # iterations from the switch to recovery; None without recovery
    before: float  # a_i(b_j)
    length: int  # iterations from this switch to the next one, or to the end


def gaps(
    task: ArrayLike,
    accuracy: ArrayLike,
    window: int | None = None,
    tolerance: float = TOLERANCE,
    order: Sequence[int] | None = None,
) -> list[Gap]:
    """Return the gap of every switch and every evaluated task before it.

    task: the task (from 1) that was being learned at each iteration.
    accuracy: a row per iteration and a column per task, NaN where it was not evaluated.
    window: within how many iterations after the switch the lowest accuracy is searched; None for
        all until the next switch, since a gap may come late.
    tolerance: a task has recovered when, after its lowest accuracy, it is at most this many points
        below a_i(b_j). A task that never fell further recovers after 0 iterations.
    order: what is learned at each place, if tasks return. A task has no gap while it is learned.
    """
    learned, curves = checked(task, accuracy)
    kinds = learned_at(order, curves.shape[1])
    places, all_gaps = new_places(order, curves.shape[1]), []
    for j in range(1, curves.shape[1]):
        switch, end = np.searchsorted(learned, [j, j + 1], side="right")
        for i in (place for place in places if place < j):
            before = evaluated(curves[:switch, i])
            if len(before) and kinds[i] != kinds[j]:
                curve = np.concatenate([before[-1:], curves[switch:end, i]])
                all_gaps.append(_gap(int(switch), i + 1, curve, window, tolerance))
    return all_gaps


def _gap(
    switch: int, task: int, curve: NDArray[np.float64], window: int | None, tolerance: float
) -> Gap:
    """Return the gap in a curve that begins with a_i(b_j)."""
    lowest_at = int(np.nanargmin(curve if window is None else curve[: window + 1]))
    depth = float(curve[0] - curve[lowest_at])
    allowed, recovery = tolerance + ROUNDING, None
    back = np.flatnonzero(curve[lowest_at:] >= curve[0] - allowed)
    if depth <= allowed:
        recovery = 0
    elif len(back):
        recovery = lowest_at + int(back[0])
    return Gap(switch, task, depth, lowest_at, recovery, float(curve[0]), len(curve) - 1)


def ends(task: ArrayLike, accuracy: ArrayLike) -> list[list[float]]:
    """Return the last accuracies of curves at the end of each task, on the tasks until then."""
    learned, curves = checked(task, accuracy)
    accuracies = []
    for k in range(1, int(learned[-1]) + 1):
        known = [evaluated(curves[learned <= k, i]) for i in range(k)]
        for i, values in enumerate(known, 1):
            if not len(values):
                raise UserError(f"task {i} was not evaluated until the end of task {k}")
        accuracies.append([float(values[-1]) for values in known])
    return accuracies


def checked(task: ArrayLike, accuracy: ArrayLike) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
    """Return curves as arrays, or say in one line what is wrong with them."""
    try:
        learned, curves = np.asarray(task, int), np.asarray(accuracy, float)
    except (TypeError, ValueError):
        raise UserError("tasks and accuracies must be arrays of numbers") from None
    if learned.ndim != 1 or curves.ndim != 2 or len(learned) != len(curves) or not len(learned):
        raise UserError(
            "curves need a task per iteration, and a row of accuracies per iteration with a column "
            f"per task, not arrays of shape {list(learned.shape)} and {list(curves.shape)}"
        )
    steps = np.diff(learned)
    if learned[0] != 1 or ((steps != 0) & (steps != 1)).any() or learned[-1] > curves.shape[1]:
        raise UserError(
            f"tasks are counted from 1 and come one after another, up to {curves.shape[1]} (the "
            "columns of accuracies)"
        )
    return learned, curves


def evaluated(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the accuracies of a curve where it was evaluated."""
    return curve[np.isfinite(curve)]
