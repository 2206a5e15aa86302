"""The front: what is left of the gap against the time to learn a new task, a point per method."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.drawing.names import add_names
from twofold.drawing.style import (
    BLACK,
    DOUBLE,
    GREEN,
    PALE,
    STYLE,
    add_note,
    empty_figure,
)
from twofold.errors import UserError
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.notes import notes
from twofold.report.figures.series import Labels, labels_of
from twofold.statistics import mean_and_error

PLAIN = "sgd"  # the routines of the objective alone
TIME, LOSS = "measures.new_speed", "measures.residual"
HEIGHT = 2.6  # inches of a panel
PER_POINT = 0.06  # inches more for each point above ten
LINEAR = 1.0  # residuals are drawn linearly up to this one, and then logarithmically
RESIDUALS = (0, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
MEANING = (
    "The line joins the methods for which no method of the panel is as good in both measures and "
    "better in one. They are green, the plain objective is black, and all others are grey. "
    f"Residuals are linear up to {LINEAR:g}, and logarithmic above."
)

Place = tuple[float, float]  # time and residual


@figure(
    "front",
    "residual against the iterations until a new task is learned; a point per method",
    ["er"],
    list,
    any_method=True,
)
def front_figure(runs: Sequence[Run], labels: Labels | None = None) -> Figure:
    """Draw a panel per objective, with a named point per method and its standard errors.

    Both measures are means over tasks.
    """
    groups = [group for group in method_groups(runs) if group.values(TIME) and group.values(LOSS)]
    if not groups:
        raise UserError("the figure front needs runs with at least two tasks")
    names = labels_of(groups, labels)
    panels: dict[str, list[Group]] = {}
    for group in groups:
        panels.setdefault(group.objective, []).append(group)
    heights = [HEIGHT + PER_POINT * max(0, len(panel) - 10) for panel in panels.values()]
    with mpl.rc_context(STYLE):
        drawn = empty_figure(DOUBLE, sum(heights))
        column = drawn.subplots(
            len(panels), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
        )[:, 0]
        for axes, (objective, panel) in zip(column, panels.items(), strict=True):
            axes.set_title(objective, loc="left")
            _draw_panel(axes, panel)
            _scale(axes)
        column[-1].set_xlabel("new task at 90% (iterations)")
        add_note(drawn, [*notes(groups, names), MEANING])
        drawn.draw_without_rendering()  # now the axes have their size
        for axes, panel in zip(column, panels.values(), strict=True):
            shown = [_short(names[group.config.method], group.objective) for group in panel]
            lines = [_front(panel), *(bar for group in panel for bar in _bars(group))]
            add_names(axes, [_place(group) for group in panel], shown, lines)
    return drawn


def _short(name: str, objective: str) -> str:
    """Leave out the objective, which is the panel's title."""
    return name.removeprefix(f"{objective}+")


def _place(group: Group) -> Place:
    x, y = (mean_and_error(group.values(metric))[0] for metric in (TIME, LOSS))
    return x, y


def _errors(group: Group) -> Place:
    """Return the standard errors; 0 with fewer than three seeds."""
    x, y = (mean_and_error(group.values(metric))[1] or 0.0 for metric in (TIME, LOSS))
    return x, y


def _bars(group: Group) -> list[list[Place]]:
    """Return the ends of the bars of standard errors."""
    (x, y), (dx, dy) = _place(group), _errors(group)
    return [[(x - dx, y), (x + dx, y)], [(x, y - dy), (x, y + dy)]]


def _front(panel: Sequence[Group]) -> list[Place]:
    """Return the corners of the line: from each point to the right, and down to the next."""
    front = undominated([_place(group) for group in panel])
    corners = [(x, y) for (_, y), (x, _) in pairwise(front)]
    return [*front[:1], *(each for pair in zip(corners, front[1:], strict=True) for each in pair)]


def undominated(places: Sequence[Place]) -> list[Place]:
    """Return the points for which none is as low in both coordinates and lower in one.

    They are sorted from left to right.
    """
    front: list[Place] = []
    for x, y in sorted(places):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def _draw_panel(axes: Axes, panel: Sequence[Group]) -> None:
    axes.plot(*zip(*_front(panel), strict=True), color=GREEN, ls=":", zorder=0)
    front = undominated([_place(group) for group in panel])
    for group in panel:
        (x, y), (dx, dy) = _place(group), _errors(group)
        colour, layer = (GREEN, 3) if (x, y) in front else (PALE, 2)
        colour, layer = (BLACK, 4) if group.routines == PLAIN else (colour, layer)
        axes.errorbar([x], [y], [dy], [dx], fmt="o", ms=3.5, lw=0.7, color=colour, zorder=layer)


def _scale(axes: Axes) -> None:
    """Make times logarithmic, and residuals too where they are large, with round ticks on both.

    If there are few decades, times have ticks between them.
    """
    axes.set_xscale("log")
    axes.margins(x=0.12, y=0.08)  # names need room above the highest point, too
    low, high = axes.get_xlim()
    few = high < 10 * low
    axes.xaxis.set_major_locator(
        MaxNLocator(5, steps=[1, 2, 5, 10]) if few else LogLocator(subs=(1, 2, 5))
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.8)
    axes.yaxis.set_major_locator(FixedLocator(RESIDUALS))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=-0.15)
    axes.set_ylabel("residual (points)")
