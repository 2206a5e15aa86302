"""Figure 1: even full replay, which has all past data, has a stability gap."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.compare.selection import method_groups, of_methods
from twofold.drawing.curves import Task
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.series import Labels, one_stack

METHODS = ["joint"]


@figure("joint", "accuracy on a task under full replay alone", METHODS, of_methods(*METHODS))
def joint_figure(
    runs: Sequence[Run], task: Task = 1, labels: Labels | None = None, among: Sequence[Run] = ()
) -> Figure:
    """Draw the whole curve of the accuracy on `task`: mean and standard error over seeds."""
    return one_stack(method_groups(runs), task, labels=labels, among=among, zoomed=False)
