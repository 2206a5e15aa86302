"""Stability gaps: a column per objective."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.compare.selection import method_groups
from twofold.drawing.curves import Task
from twofold.drawing.panels import stacks_figure
from twofold.experiments.plotting import mean_notes
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure, preferred
from twofold.report.figures.notes import notes
from twofold.report.figures.series import Labels, group_timeline, labels_of, one_stack, stacks


@figure(
    "gap",
    "accuracy on a task while later ones are learned; objectives side by side",
    ["er"],
    preferred("gap"),
    any_method=True,
)
def gap_figure(
    runs: Sequence[Run],
    task: Task = 1,
    zoom: int | None = None,
    labels: Labels | None = None,
    together: bool = False,
    among: Sequence[Run] = (),
) -> Figure:
    """Draw the accuracy on a task from its start on: a column per objective.

    On top are the first 50 iterations after each task switch, from the last evaluation before it
    (0), or fewer if tasks are shorter or evaluation was dense for fewer iterations. In the middle
    is the whole curve, below it the share of runs whose gradient was projected. Lines are means
    over seeds, bands standard errors. The accuracy axes are all alike and fit the curves after the
    first switch, so that a task's first climb from chance may begin below them.

    task: the number of the task, or "mean" for the mean over all tasks begun by then.
    zoom: iterations after a switch, instead of 50.
    labels: what to call methods, by method.
    together: with all objectives in one column.
    among: all runs of the store, so that a method's colour is that of all its figures.
    """
    groups = method_groups(runs)
    if together:
        return one_stack(groups, task, zoom, labels, among)
    timeline = group_timeline(groups, task)
    below = [*notes(groups, labels_of(groups, labels)), *mean_notes(task)]
    return stacks_figure(stacks(groups, task, labels, among), timeline, below, zoom=zoom)
