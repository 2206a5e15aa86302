"""Any methods side by side, whatever their objectives."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.panels import one_column
from twofold.report.figures.picking import method_cells


@figure(
    "compare",
    "accuracy on a task while later ones are learned; all methods there are, in one column",
    ["er"],
    list,
    any_method=True,
)
def compare_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """As `gap_figure`, with all methods in one column; what was projected only if anything was."""
    return one_column(method_cells(runs), task)
