"""The paper's figure 1: even full replay, which has all past data, has a stability gap."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.panels import one_column
from twofold.report.figures.picking import method_cells, of_methods

METHODS = ["joint"]


@figure("joint", "accuracy on a task under full replay alone", METHODS, of_methods(*METHODS))
def joint_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """The whole curve of the accuracy on `task`: mean and standard error over seeds."""
    return one_column(method_cells(runs), task, zoomed=False)
