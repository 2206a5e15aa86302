"""The paper's figures of stability gaps: a column an objective, ER beside full replay."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.curves import Timeline, accuracy_curve
from twofold.report.figures.panels import Series, columns_figure
from twofold.report.figures.picking import method_cells, of_methods
from twofold.report.figures.style import looks

METHODS = ["er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem"]


def papers(runs: Sequence[Run]) -> list[Run]:
    """Those of the paper's methods; if there are none, all."""
    return of_methods(*METHODS)(runs) or list(runs)


@figure(
    "gap",
    "accuracy on a task while later ones are learned; ER and full replay side by side",
    METHODS,
    papers,
    any_method=True,
)
def gap_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """Accuracy on `task` from its start on: a column of panels an objective, a colour a routine.

    On top the first 50 iterations after each task switch, from the last evaluation before it (0),
    or fewer where tasks are shorter or only fewer were judged one by one;
    in the middle the whole curve; below the share of runs whose gradient was projected. Lines are
    means over seeds, bands standard errors. The accuracy axes are all alike and fit what comes
    after the first switch: a task's first climb, from chance, may begin below them.
    """
    cells = method_cells(runs)
    timeline = Timeline.of(cells, task)
    styles = looks(sorted({cell.routines for cell in cells}, key=lambda how: (how != "sgd", how)))
    columns: dict[str, list[Series]] = {}
    for cell in cells:
        curve, style = accuracy_curve(cell, task), styles[cell.routines]
        columns.setdefault(cell.objective, []).append(Series(cell, curve, cell.routines, style))
    return columns_figure(columns, timeline)
