"""Appendix D: GEM's projection where a constraint is violated, or at every iteration."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.compare.groups import Group
from twofold.compare.selection import method_groups, of_methods
from twofold.drawing.curves import Task
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.series import Labels, one_stack

METHODS = ["er+gem(when=violated)", "er+gem(when=always)"]


def both(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of both rules, or none if one rule has no runs."""
    violated, always = (of_methods(method)(runs) for method in METHODS)
    return [*violated, *always] if violated and always else []


@figure(
    "projection-rule",
    "ER+GEM that projects where a constraint is violated, or always",
    METHODS,
    both,
)
def projection_rule_figure(
    runs: Sequence[Run],
    task: Task = 1,
    zoom: int | None = None,
    labels: Labels | None = None,
    among: Sequence[Run] = (),
) -> Figure:
    """Draw zooms, the whole curve and the share of projections for both rules of GEM."""
    groups = method_groups(runs)
    names = {group.config.method: _rule(group) for group in groups} | dict(labels or {})
    return one_stack(groups, task, zoom, names, among, title="when er+gem projects")


def _rule(group: Group) -> str:
    always = of_methods(METHODS[1])(group.runs)
    return "always" if always else "where a constraint is violated"
