"""The front: what is left of the gap against the time to learn a new task, a point per method."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.drawing.names import add_names
from twofold.drawing.style import DOUBLE, PALE, STYLE, Style, add_note, empty_figure
from twofold.errors import UserError
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.notes import notes
from twofold.report.figures.series import Labels, labels_of, styles_of
from twofold.statistics import mean_and_error

TIME, LOSS = "measures.new_speed", "measures.residual"
HEIGHT = 2.6  # inches of a panel
PER_POINT = 0.06  # inches more for each point above ten
LINEAR = 1.0  # residuals are drawn linearly up to this one, and then logarithmically
RESIDUALS = (0, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
MEANING = (
    "The line joins the methods that no method of the panel beats in both. Residuals are linear "
    f"up to {LINEAR:g}, and logarithmic above."
)


@figure(
    "front",
    "residual against the iterations until a new task is learned; a point per method",
    ["er"],
    list,
    any_method=True,
)
def front_figure(
    runs: Sequence[Run], labels: Labels | None = None, among: Sequence[Run] = ()
) -> Figure:
    """Draw a panel per objective, with a named point per method and its standard errors.

    Both measures are means over tasks.
    """
    groups = [group for group in method_groups(runs) if group.values(TIME) and group.values(LOSS)]
    if not groups:
        raise UserError("the figure front needs runs with at least two tasks")
    names, styles = labels_of(groups, labels), styles_of(groups, among)
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
            _draw_front(axes, [_place(group) for group in panel])
            for group in panel:
                _draw_point(axes, group, styles[group.config.method])
            _scale(axes)
        column[-1].set_xlabel("new task at 90% (iterations)")
        add_note(drawn, [*notes(groups, names), MEANING])
        drawn.draw_without_rendering()  # now the axes have their size
        for axes, panel in zip(column, panels.values(), strict=True):
            shown = [_short(names[group.config.method], group.objective) for group in panel]
            add_names(axes, [_place(group) for group in panel], shown)
    return drawn


def _short(name: str, objective: str) -> str:
    """Leave out the objective, which is the panel's title."""
    return name.removeprefix(f"{objective}+")


def _place(group: Group) -> tuple[float, float]:
    x, y = (mean_and_error(group.values(metric))[0] for metric in (TIME, LOSS))
    return x, y


def _draw_point(axes: Axes, group: Group, style: Style) -> None:
    (x, dx), (y, dy) = (mean_and_error(group.values(metric)) for metric in (TIME, LOSS))
    axes.errorbar([x], [y], [dy or 0], [dx or 0], fmt="o", ms=3.5, lw=0.7, color=style["color"])


def undominated(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no point beats in both coordinates, from left to right."""
    front: list[tuple[float, float]] = []
    for x, y in sorted(places):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def _draw_front(axes: Axes, places: Sequence[tuple[float, float]]) -> None:
    x, y = zip(*undominated(places), strict=True)
    axes.plot(x, y, drawstyle="steps-post", color=PALE, ls=":", zorder=0)


def _scale(axes: Axes) -> None:
    """Make times logarithmic, with ticks at round numbers however few decades there are."""
    axes.set_xscale("log")
    axes.margins(x=0.12)
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
