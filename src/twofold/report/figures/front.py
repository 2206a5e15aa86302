"""The front: what is left of the gap against the time to learn a new task, a point per method."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.drawing.style import DOUBLE, SMALL, STYLE, Style, add_note, empty_figure, wrapped
from twofold.errors import UserError
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.notes import notes
from twofold.report.figures.series import Labels, labels_of, styles_of
from twofold.statistics import mean_and_error

TIME, LOSS = "measures.new_speed", "measures.residual"
HEIGHT = 2.8  # inches, at least
LINE = 0.14  # inches of a line of the legend
NAMES = 2.4  # inches of a name in the legend, at most
MARKERS = "osD^vP*X"
POINT = 8  # pixels of a marker
SIDES = ((3, 2, "left"), (-3, 2, "right"), (3, -7, "left"), (-3, -7, "right"))  # of a number


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
    """Draw a numbered point per method with its standard errors.

    Its colour is that of the method, its marker is that of the objective. Both measures are means
    over tasks.
    """
    groups = [group for group in method_groups(runs) if group.values(TIME) and group.values(LOSS)]
    if not groups:
        raise UserError("the figure front needs runs with at least two tasks")
    names, styles = labels_of(groups, labels), styles_of(groups, among)
    objectives = list(dict.fromkeys(group.objective for group in groups))
    with mpl.rc_context(STYLE):
        entries = [
            wrapped(f"{number}  {names[group.config.method]}", NAMES, SMALL)
            for number, group in enumerate(groups, 1)
        ]
        lines = sum(len(entry.split("\n")) for entry in entries)
        drawn = empty_figure(DOUBLE, max(HEIGHT, LINE * (lines + 1)))
        axes = drawn.subplots()
        for group, entry in zip(groups, entries, strict=True):
            marker = MARKERS[objectives.index(group.objective) % len(MARKERS)]
            _point(axes, group, entry, styles[group.config.method], marker)
        _scale(axes)
        axes.set_xlabel("new task at 90% (iterations)")
        axes.set_ylabel("residual (points)")
        drawn.legend(loc="outside right upper", fontsize=SMALL, handlelength=1)
        add_note(drawn, notes(groups, names))
        drawn.draw_without_rendering()  # now the axes have their size
        _add_numbers(axes, [_place(group) for group in groups])
    return drawn


def _place(group: Group) -> tuple[float, float]:
    x, y = (mean_and_error(group.values(metric))[0] for metric in (TIME, LOSS))
    return x, y


def _point(axes: Axes, group: Group, label: str, style: Style, marker: str) -> None:
    (x, dx), (y, dy) = (mean_and_error(group.values(metric)) for metric in (TIME, LOSS))
    colour = style["color"]
    axes.errorbar(
        [x], [y], [dy or 0], [dx or 0], fmt=marker, ms=3.5, lw=0.7, color=colour, label=label
    )


def _scale(axes: Axes) -> None:
    """Make times logarithmic, with ticks at round numbers however few decades there are."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    few = high < 10 * low
    axes.xaxis.set_major_locator(
        MaxNLocator(5, steps=[1, 2, 5, 10]) if few else LogLocator(subs=(1, 2, 5))
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def _add_numbers(axes: Axes, places: Sequence[tuple[float, float]]) -> None:
    """Number the points, each on a side where no point and no earlier number is."""
    points = axes.transData.transform([*places])
    taken = [Bbox.from_bounds(x - POINT / 2, y - POINT / 2, POINT, POINT) for x, y in points]
    for number, place in enumerate(places, 1):
        sides = [_number(axes, str(number), place, side) for side in SIDES]
        boxes = [text.get_window_extent() for text in sides]
        overlaps = [sum(box.overlaps(other) for other in taken) for box in boxes]
        best = overlaps.index(min(overlaps))
        taken.append(boxes[best])
        for text in sides[:best] + sides[best + 1 :]:
            text.remove()


def _number(
    axes: Axes, text: str, place: tuple[float, float], side: tuple[float, float, str]
) -> Annotation:
    dx, dy, align = side
    return axes.annotate(
        text, place, (dx, dy), textcoords="offset points", fontsize=SMALL, ha=align
    )
