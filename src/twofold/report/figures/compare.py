"""Any methods side by side, whatever their objectives."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.compare.selection import method_groups
from twofold.drawing.curves import Task
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.series import Labels, one_stack


@figure(
    "compare",
    "accuracy on a task while later ones are learned; all methods in one column",
    ["er"],
    list,
    any_method=True,
)
def compare_figure(
    runs: Sequence[Run],
    task: Task = 1,
    zoom: int | None = None,
    labels: Labels | None = None,
    among: Sequence[Run] = (),
) -> Figure:
    """Draw all methods in one column, as `gap_figure` does for each objective.

    The share of projected gradients is shown only if there were any. Options are those of
    `gap_figure`.
    """
    return one_stack(method_groups(runs), task, zoom, labels, among)
