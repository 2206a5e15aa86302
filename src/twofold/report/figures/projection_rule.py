"""Appendix D: GEM's projection where a constraint is violated, or at every iteration."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.experiments.runs import Run
from twofold.report.cells import Cell
from twofold.report.figures.base import figure
from twofold.report.figures.panels import one_column
from twofold.report.figures.picking import method_cells, of_methods

METHODS = ["er+gem(when=violated)", "er+gem(when=always)"]


def both(runs: Sequence[Run]) -> list[Run]:
    """The runs of both rules; of one alone there is nothing to be seen."""
    violated, always = (of_methods(method)(runs) for method in METHODS)
    return [*violated, *always] if violated and always else []


@figure(
    "projection-rule",
    "ER+GEM that projects where a constraint is violated, or always",
    METHODS,
    both,
)
def projection_rule_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """Zooms, the whole curve and what was projected, for both rules; gamma is GEM's default."""
    return one_column(method_cells(runs), task, title="when er+gem projects", label=_rule)


def _rule(cell: Cell) -> str:
    always = of_methods(METHODS[1])(cell.runs)
    return "always" if always else "where a constraint is violated"
