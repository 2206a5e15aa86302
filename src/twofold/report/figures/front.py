"""The front: what is left of the gap against the time to learn a new task, a point per method."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.drawing.style import (
    BLUE,
    DOUBLE,
    GREEN,
    SMALL,
    STYLE,
    VERMILLION,
    add_note,
    empty_figure,
)
from twofold.errors import UserError
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.notes import notes
from twofold.statistics import mean_and_error

TIME, LOSS = "measures.new_speed", "measures.residual"
HEIGHT = 2.8  # inches
COLOURS = (BLUE, VERMILLION, GREEN)


@figure(
    "front",
    "residual against the iterations until a new task is learned; a point per method",
    ["er"],
    list,
    any_method=True,
)
def front_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """Draw a numbered point per method with its standard errors, in the colour of its objective.

    task: of no effect, since both measures are means over tasks.
    """
    groups = [group for group in method_groups(runs) if group.values(TIME) and group.values(LOSS)]
    if not groups:
        raise UserError("the figure front needs runs with at least two tasks")
    with mpl.rc_context(STYLE):
        drawn = empty_figure(DOUBLE, HEIGHT)
        axes = drawn.subplots()
        objectives = list(dict.fromkeys(group.objective for group in groups))
        for number, group in enumerate(groups, 1):
            colour = COLOURS[objectives.index(group.objective) % len(COLOURS)]
            _point(axes, group, number, colour)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("new task at 90% (iterations)")
        axes.set_ylabel("residual (points)")
        drawn.legend(loc="outside right upper", fontsize=SMALL, handlelength=1)
        add_note(drawn, notes(groups))
    return drawn


def _point(axes: Axes, group: Group, number: int, colour: str) -> None:
    (x, dx), (y, dy) = (mean_and_error(group.values(metric)) for metric in (TIME, LOSS))
    label = f"{number}  {group.config.method}"
    axes.errorbar([x], [y], [dy or 0], [dx or 0], fmt="o", ms=3, color=colour, label=label)
    axes.annotate(str(number), (x, y), (3, 2), textcoords="offset points", fontsize=SMALL)
