"""Measures of a run, computed from its accuracy curves. See docs/measures.md.

There are T tasks. Task i ends after b_i iterations of the run. a_i(n) is the accuracy on task i
after iteration n, in percent, on the images of continual evaluation. A task that returns is one
task: it is learned at its first visit, and is not old while it is learned again.

A measure is None if it is undefined (a single task has no gap) or if too little was evaluated. To
add a measure, write a function. Tables and pages show the first paragraph of its docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # which imports its parts when they are first used
from numpy.typing import ArrayLike, NDArray

from twofold.evaluation.metrics import average_accuracy
from twofold.evaluation.trajectory import (
    ROUNDING,
    Gap,
    Trajectory,
    checked,
    ends,
    evaluated,
)

REACHED = 0.9  # a new task counts as learned with this share of the accuracy at its own end
SHOTS = 10  # iterations of the learning curve area (beta in the A-GEM paper)


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
    order: Sequence[int] | None = None,
) -> dict[str, float | None]:
    """Return all measures of a run by key.

    task: the task (from 1) that was being learned at each iteration.
    accuracy: a row per iteration and a column per task, NaN where it was not evaluated. The last
        iteration of every task must be evaluated.
    final: [k][i] is the accuracy on the whole test set of task i+1, after task k+1. By default it
        is the last accuracy of the curves.
    lowest: a table like `accuracy` with the lowest accuracies so far, if `accuracy` has gaps and
        these are known nevertheless.
    order: what is learned at each place of the sequence, such as [1, 2, 1], if tasks return.
    """
    learned, curves = checked(task, accuracy)
    final = ends(learned, curves) if final is None else final
    trajectory = Trajectory(learned, curves, final, lowest, order)
    return {key: measure.of(trajectory) for key, measure in MEASURES.items()}


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
    return average_accuracy([run.final[-1][i] for i in run.places])


@measure("residual", "residual", "points", "lower", "lower bound", needs_curve=False)
def residual(run: Trajectory) -> float | None:
    """Accuracy of old tasks at the end minus MIN, on the same images. It is the accuracy that old
    tasks lost only temporarily, or had not yet reached when the next task began.

    1/(T-1) sum_{i<T} [a_i(b_T) - min_{n>b_i} a_i(n)]
    """
    pairs = zip(run.old, run.minima, strict=True)
    return _mean(_last(run.accuracy[:, i]) - low for i, low in pairs)


@measure("wc_acc", "WC-ACC", "percent", "higher", "upper bound", needs_curve=False)
def worst_case_accuracy(run: Trajectory) -> float | None:
    """Worst-case accuracy: the last task's accuracy at the end, weighted by 1/T, plus MIN, weighted
    by 1-1/T.

    1/T [a_T(b_T) + sum_{i<T} min_{n>b_i} a_i(n)]
    """
    last = [_last(run.accuracy[:, i]) for i in run.places if i not in run.old]
    return _mean([*run.minima, *last])


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
        curve = run.complete[gap.switch : gap.switch + gap.length, gap.task - 1]
        return float(np.maximum(gap.before - curve, 0).mean())

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
    return _mean(_largest_falls(run.columns.T, 10))


@measure("wf100", "WF100", "points", "lower", "lower bound")
def windowed_forgetting_100(run: Trajectory) -> float | None:
    """Windowed forgetting within any 100 iterations instead of 10."""
    return _mean(_largest_falls(run.columns.T, 100))


@measure("wp10", "WP10", "points", "higher", "lower bound")
def windowed_plasticity_10(run: Trajectory) -> float | None:
    """Windowed plasticity: the largest rise of a task's accuracy within any 10 iterations; mean
    over tasks. The recovery from a gap counts as a rise.

    1/T sum_i max_{n-w<m<=n} [a_i(n) - a_i(m)]
    """
    return _mean(_largest_falls(-run.columns.T, 10))


@measure("wp100", "WP100", "points", "higher", "lower bound")
def windowed_plasticity_100(run: Trajectory) -> float | None:
    """Windowed plasticity within any 100 iterations instead of 10."""
    return _mean(_largest_falls(-run.columns.T, 100))


@measure("aaa", "AAA", "percent", "higher", "approximate")
def anytime_accuracy(run: Trajectory) -> float | None:
    """Average anytime accuracy: the mean accuracy on the tasks seen so far, averaged over all
    iterations.

    1/b_T sum_n 1/k sum_{i<=k} a_i(n), where k is the task that is learned at n
    """
    return _mean(np.nanmean(run.complete[:, run.places], axis=1))


@measure("lca", "LCA", "percent", "higher", "unaffected")
def learning_curve_area(run: Trajectory) -> float | None:
    """Learning curve area: the mean accuracy of a task in its own first 10 iterations; mean over
    tasks.

    1/T sum_k 1/beta sum_{b=1}^beta a_k(b_{k-1}+b)
    """
    first = [run.of_task(i + 1)[:SHOTS] for i in run.places]
    return _mean(a.mean() if len(a) == SHOTS else np.nan for a in first)


@measure("forgetting", "forgetting", "points", "lower", "unaffected", whole=True)
def forgetting(run: Trajectory) -> float | None:
    """Best accuracy of a task at the end of any task except for the last, minus its accuracy at the
    end of the run, on the whole test sets (Chaudhry et al.); mean over all tasks except for the
    last.

    1/(T-1) sum_{i<T} [max_{i<=k<T} a_i(b_k) - a_i(b_T)]
    """
    *earlier, end = run.final
    return _mean(max(row[i] for row in earlier[i:]) - end[i] for i in run.old)


@measure("bwt", "BWT", "points", "higher", "unaffected", whole=True)
def backward_transfer(run: Trajectory) -> float | None:
    """Backward transfer: a task's accuracy at the end of the run minus its accuracy right after it
    was learned, on the whole test sets; mean over all tasks except for the last.

    1/(T-1) sum_{i<T} [a_i(b_T) - a_i(b_i)]
    """
    *earlier, end = run.final
    return _mean(end[i] - earlier[i][i] for i in run.old)


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

    return _mean(reached(run.of_task(i + 1)) for i in run.places[1:])


@measure("new_accuracy", "new-task accuracy", "percent", "higher", "unaffected", whole=True)
def new_task_accuracy(run: Trajectory) -> float | None:
    """Accuracy of a new task at its own end, on the whole test set; mean over all tasks except for
    the first.

    1/(T-1) sum_{k>1} a_k(b_k)
    """
    return _mean(run.final[i][i] for i in run.places[1:])


def _largest_falls(curves: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Return the largest fall of each column within any `window` iterations.

    It is NaN if no two evaluations are that close.
    """
    known = np.isfinite(curves)
    values = np.where(known, curves, -np.inf)
    # The highest of the last `window` iterations includes this one, so a rising curve falls by 0.
    highest = scipy.ndimage.maximum_filter1d(
        values, window, axis=0, origin=(window - 1) // 2, mode="nearest"
    )
    falls = np.where(known, highest - curves, -np.inf).max(axis=0, initial=-np.inf)
    close = [(np.diff(np.flatnonzero(column)) < window).any() for column in known.T]
    return np.where(close, falls, np.nan)


def _last(curve: NDArray[np.float64]) -> float:
    return float(evaluated(curve)[-1])


def _mean(values: Iterable[float]) -> float | None:
    """Return the mean; None if there are no values or some are missing."""
    numbers = values if isinstance(values, np.ndarray) else list(values)
    mean = float(np.mean(numbers)) if len(numbers) else np.nan
    return mean if np.isfinite(mean) else None
