"""Measures of a run, computed from its accuracy curves. See docs/measures.md.

There are T tasks. Task i ends after b_i iterations of the run. a_i(n) is the accuracy on task i
after iteration n, in percent, on the images of continual evaluation.

A measure is None if it is undefined (a single task has no gap) or if too little was evaluated. To
add a measure, write a function. Tables and pages show the first paragraph of its docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy  # which imports its parts when they are first used
from numpy.typing import ArrayLike, NDArray

from twofold.errors import UserError
from twofold.evaluation.metrics import average_accuracy, minimum_accuracies

TOLERANCE = 1.0  # a task has recovered within this many points of its accuracy at the switch
REACHED = 0.9  # a new task counts as learned with this share of the accuracy at its own end
SHOTS = 10  # iterations of the learning curve area (beta in the A-GEM paper)
ROUNDING = 1e-4  # accuracies are recorded in single precision


class Trajectory:
    """The accuracies of a run over its iterations.

    task: the task (from 1) that was being learned at each iteration.
    accuracy: a row per iteration and a column per task, NaN where it was not evaluated. (The last
        iteration of every task is always evaluated.)
    final: [k][i] is the accuracy on the whole test set of task i+1, after task k+1.
    lowest: the same table with the lowest accuracies so far, if these were recorded separately.
    """

    def __init__(
        self,
        task: ArrayLike,
        accuracy: ArrayLike,
        final: Sequence[Sequence[float]],
        lowest: ArrayLike | None = None,
    ) -> None:
        self.task, self.accuracy = np.asarray(task, int), np.asarray(accuracy, float)
        self.final, self.tasks = final, self.accuracy.shape[1]
        self.lowest = self.accuracy if lowest is None else np.asarray(lowest, float)

    @cached_property
    def minima(self) -> NDArray[np.float64]:
        return minimum_accuracies(self.task, self.lowest)

    @cached_property
    def gaps(self) -> list[Gap]:
        return gaps(self.task, self.accuracy)

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

    def of_task(self, k: int) -> NDArray[np.float64]:
        """Return a_k during task k."""
        own: NDArray[np.float64] = self.accuracy[self.task == k, k - 1]
        return own


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
) -> list[Gap]:
    """Return the gap of every switch and every evaluated task before it.

    task: the task (from 1) that was being learned at each iteration.
    accuracy: a row per iteration and a column per task, NaN where it was not evaluated.
    window: within how many iterations after the switch the lowest accuracy is searched; None for
        all until the next switch, since a gap may come late.
    tolerance: a task has recovered when, after its lowest accuracy, it is at most this many points
        below a_i(b_j). A task that never fell further recovers after 0 iterations.
    """
    learned, curves = _checked(task, accuracy)
    found = []
    for j in range(1, curves.shape[1]):
        switch, end = np.searchsorted(learned, [j, j + 1], side="right")
        for i in range(j):
            before = _evaluated(curves[:switch, i])
            if len(before):
                curve = np.concatenate([before[-1:], curves[switch:end, i]])
                found.append(_gap(int(switch), i + 1, curve, window, tolerance))
    return found


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


Unit = Literal["percent", "points", "iterations"]
Better = Literal["higher", "lower"]
Thinned = Literal["unaffected", "upper bound", "lower bound", "approximate"]
Function = Callable[[Trajectory], float | None]


@dataclass(frozen=True)
class Measure:
    """A number computed from a trajectory, with its title, unit and explanation."""

    title: str
    unit: Unit
    better: Better
    thinned: Thinned  # its meaning if not every iteration was evaluated
    whole: bool  # whether it uses whole test sets instead of the images of continual evaluation
    needs_curve: bool  # whether it depends on more than minima and the accuracies at the end
    explanation: str
    of: Function


MEASURES: dict[str, Measure] = {}  # by key, in the order in which they are shown


def measures(
    task: ArrayLike,
    accuracy: ArrayLike,
    final: Sequence[Sequence[float]] | None = None,
    lowest: ArrayLike | None = None,
) -> dict[str, float | None]:
    """Return all measures of a run by key.

    task: the task (from 1) that was being learned at each iteration.
    accuracy: a row per iteration and a column per task, NaN where it was not evaluated. The last
        iteration of every task must be evaluated.
    final: [k][i] is the accuracy on the whole test set of task i+1, after task k+1. By default it
        is the last accuracy of the curves.
    lowest: a table like `accuracy` with the lowest accuracies so far, if `accuracy` has gaps and
        these are known nevertheless.
    """
    learned, curves = _checked(task, accuracy)
    final = ends(learned, curves) if final is None else final
    trajectory = Trajectory(learned, curves, final, lowest)
    return {key: measure.of(trajectory) for key, measure in MEASURES.items()}


def ends(task: ArrayLike, accuracy: ArrayLike) -> list[list[float]]:
    """Return the last accuracies of curves at the end of each task, on the tasks until then."""
    learned, curves = _checked(task, accuracy)
    found = []
    for k in range(1, int(learned[-1]) + 1):
        known = [_evaluated(curves[learned <= k, i]) for i in range(k)]
        for i, values in enumerate(known, 1):
            if not len(values):
                raise UserError(f"task {i} was not evaluated until the end of task {k}")
        found.append([float(values[-1]) for values in known])
    return found


def _checked(task: ArrayLike, accuracy: ArrayLike) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
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


def measure(
    key: str,
    title: str,
    unit: Unit,
    better: Better,
    thinned: Thinned,
    whole: bool = False,
    needs_curve: bool = True,
) -> Callable[[Function], Function]:
    """Return a decorator that adds a function to `MEASURES`."""

    def add(function: Function) -> Function:
        about = " ".join(inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].split())
        MEASURES[key] = Measure(title, unit, better, thinned, whole, needs_curve, about, function)
        return function

    return add


@measure("min", "MIN", "percent", "higher", "upper bound", needs_curve=False)
def minimum(run: Trajectory) -> float | None:
    """Lowest accuracy of a task after it was learned; mean over all tasks except for the last.

    1/(T-1) sum_{i<T} min_{n>b_i} a_i(n)
    """
    return _mean(run.minima)


@measure("avg", "AVG", "percent", "higher", "unaffected", whole=True)
def average(run: Trajectory) -> float | None:
    """Accuracy at the end, on the whole test sets; mean over tasks."""
    return average_accuracy(run.final[-1])


@measure("residual", "residual", "points", "lower", "lower bound", needs_curve=False)
def residual(run: Trajectory) -> float | None:
    """Accuracy of old tasks at the end minus MIN, on the same images. It is the accuracy that old
    tasks lost only temporarily, or had not yet reached when the next task began.

    1/(T-1) sum_{i<T} [a_i(b_T) - min_{n>b_i} a_i(n)]
    """
    return _mean(_last(run.accuracy[:, i]) - low for i, low in enumerate(run.minima))


@measure("wc_acc", "WC-ACC", "percent", "higher", "upper bound", needs_curve=False)
def worst_case_accuracy(run: Trajectory) -> float | None:
    """Worst-case accuracy: the last task's accuracy at the end, weighted by 1/T, plus MIN, weighted
    by 1-1/T.

    1/T [a_T(b_T) + sum_{i<T} min_{n>b_i} a_i(n)]
    """
    return _mean([*run.minima, _last(run.accuracy[:, -1])])


@measure("gap_depth", "gap depth", "points", "lower", "lower bound")
def gap_depth(run: Trajectory) -> float | None:
    """Largest fall of an old task below its accuracy at a switch, until the next switch; mean over
    switches and old tasks.

    mean_{i<=j<T} [a_i(b_j) - min_{b_j<=n<=b_{j+1}} a_i(n)]
    """
    return _mean(gap.depth for gap in run.gaps)


@measure("gap_area", "gap area", "points", "lower", "approximate")
def gap_area(run: Trajectory) -> float | None:
    """Average distance of an old task below its accuracy at a switch, until the next switch; mean
    over switches and old tasks. Above that accuracy, the distance is 0.

    mean_{i<=j<T} mean_{b_j<n<=b_{j+1}} [a_i(b_j) - a_i(n)]_+
    """

    def below(gap: Gap) -> float:
        after = run.complete[gap.switch : gap.switch + gap.length, gap.task - 1]
        return float(np.maximum(gap.before - after, 0).mean())

    return _mean(below(gap) for gap in run.gaps)


@measure("recovery", "recovery", "iterations", "lower", "approximate")
def recovery(run: Trajectory) -> float | None:
    """Iterations from a switch until an old task, after its lowest accuracy, is within 1 point of
    its accuracy at the switch; mean over switches and old tasks. It is 0 for a task that never fell
    further, and the number of iterations until the next switch for a task that did not recover.
    """
    return _mean(gap.length if gap.recovery is None else gap.recovery for gap in run.gaps)


@measure("recovered", "recovered", "percent", "higher", "approximate")
def recovered(run: Trajectory) -> float | None:
    """Share of old tasks that recovered before the next switch, over all switches."""
    return _mean(0.0 if gap.recovery is None else 100.0 for gap in run.gaps)


@measure("wf10", "WF10", "points", "lower", "lower bound")
def windowed_forgetting_10(run: Trajectory) -> float | None:
    """Windowed forgetting: the largest fall of a task's accuracy within any 10 iterations; mean
    over tasks.

    1/T sum_i max_{n-w<m<=n} [a_i(m) - a_i(n)]
    """
    return _mean(_largest_fall(column, 10) for column in run.accuracy.T)


@measure("wf100", "WF100", "points", "lower", "lower bound")
def windowed_forgetting_100(run: Trajectory) -> float | None:
    """Windowed forgetting within any 100 iterations instead of 10."""
    return _mean(_largest_fall(column, 100) for column in run.accuracy.T)


@measure("wp10", "WP10", "points", "higher", "lower bound")
def windowed_plasticity_10(run: Trajectory) -> float | None:
    """Windowed plasticity: the largest rise of a task's accuracy within any 10 iterations; mean
    over tasks. The recovery from a gap counts as a rise.

    1/T sum_i max_{n-w<m<=n} [a_i(n) - a_i(m)]
    """
    return _mean(_largest_fall(-column, 10) for column in run.accuracy.T)


@measure("wp100", "WP100", "points", "higher", "lower bound")
def windowed_plasticity_100(run: Trajectory) -> float | None:
    """Windowed plasticity within any 100 iterations instead of 10."""
    return _mean(_largest_fall(-column, 100) for column in run.accuracy.T)


@measure("aaa", "AAA", "percent", "higher", "approximate")
def anytime_accuracy(run: Trajectory) -> float | None:
    """Average anytime accuracy: the mean accuracy on the tasks seen so far, averaged over all
    iterations.

    1/b_T sum_n 1/k sum_{i<=k} a_i(n), where k is the task that is learned at n
    """
    return _mean(np.nanmean(run.complete, axis=1))


@measure("lca", "LCA", "percent", "higher", "unaffected")
def learning_curve_area(run: Trajectory) -> float | None:
    """Learning curve area: the mean accuracy of a task in its own first 10 iterations; mean over
    tasks.

    1/T sum_k 1/beta sum_{b=1}^beta a_k(b_{k-1}+b)
    """
    first = [run.of_task(k)[:SHOTS] for k in range(1, run.tasks + 1)]
    return _mean(a.mean() if len(a) == SHOTS else np.nan for a in first)


@measure("forgetting", "forgetting", "points", "lower", "unaffected", whole=True)
def forgetting(run: Trajectory) -> float | None:
    """Best accuracy of a task at the end of any task except for the last, minus its accuracy at the
    end of the run, on the whole test sets (Chaudhry et al.); mean over all tasks except for the
    last.

    1/(T-1) sum_{i<T} [max_{i<=k<T} a_i(b_k) - a_i(b_T)]
    """
    *earlier, end = run.final
    return _mean(max(after[i] for after in earlier[i:]) - end[i] for i in range(len(earlier)))


@measure("bwt", "BWT", "points", "higher", "unaffected", whole=True)
def backward_transfer(run: Trajectory) -> float | None:
    """Backward transfer: a task's accuracy at the end of the run minus its accuracy right after it
    was learned, on the whole test sets; mean over all tasks except for the last.

    1/(T-1) sum_{i<T} [a_i(b_T) - a_i(b_i)]
    """
    *earlier, end = run.final
    return _mean(end[i] - after[i] for i, after in enumerate(earlier))


@measure("new_speed", "new task at 90%", "iterations", "lower", "upper bound")
def new_task_speed(run: Trajectory) -> float | None:
    """Iterations until a new task has 90% of its accuracy at its own end; mean over all tasks
    except for the first. It is also low for a method that learns little, so read it together with
    the new-task accuracy.

    1/(T-1) sum_{k>1} min {n: a_k(b_{k-1}+n) >= 0.9 a_k(b_k)}
    """

    def reached(curve: NDArray[np.float64]) -> float:
        end = _last(curve)  # 90% of a value below 0, such as a negative reward, means nothing
        return np.nan if end < 0 else 1 + int(np.argmax(curve >= REACHED * end - ROUNDING))

    return _mean(reached(run.of_task(k)) for k in range(2, run.tasks + 1))


@measure("new_accuracy", "new-task accuracy", "percent", "higher", "unaffected", whole=True)
def new_task_accuracy(run: Trajectory) -> float | None:
    """Accuracy of a new task at its own end, on the whole test set; mean over all tasks except for
    the first.

    1/(T-1) sum_{k>1} a_k(b_k)
    """
    return _mean(after[-1] for after in run.final[1:])


def _largest_fall(curve: NDArray[np.float64], window: int) -> float:
    """Return the largest fall within any `window` iterations.

    It is NaN if no two evaluations are that close.
    """
    known = np.isfinite(curve)
    if not (np.diff(np.flatnonzero(known)) < window).any():
        return np.nan
    values = np.where(known, curve, -np.inf)
    # The highest of the last `window` iterations includes this one, so a rising curve falls by 0.
    highest = scipy.ndimage.maximum_filter1d(
        values, window, origin=(window - 1) // 2, mode="nearest"
    )
    return float((highest - curve)[known].max())


def _evaluated(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    return curve[np.isfinite(curve)]


def _last(curve: NDArray[np.float64]) -> float:
    return float(_evaluated(curve)[-1])


def _mean(values: Iterable[float]) -> float | None:
    """Return the mean; None if there are no values or some are missing."""
    mean = float(np.mean(list(values) or np.nan))
    return mean if np.isfinite(mean) else None
