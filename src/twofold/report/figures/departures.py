"""Departures: runs that follow the text, runs with departures, and references, by method."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from twofold.compare.departures import Effect, explained
from twofold.compare.reference import printed
from twofold.compare.shelf import Setting
from twofold.drawing.style import (
    BLACK,
    BLUE,
    DOUBLE,
    LARGE,
    PALE,
    STYLE,
    VERMILLION,
    add_note,
    empty_figure,
)
from twofold.report.tables.model import title_of
from twofold.text import signed

ROW, HEAD = 0.3, 0.55  # inches
METRICS = ("avg", "min")
MARKS = {
    "the text": Line2D([], [], marker="o", linestyle="", color=BLUE, markerfacecolor="white"),
    "with departures": Line2D([], [], marker="o", linestyle="", color=BLUE),
    "the reference": Line2D([], [], marker="D", linestyle="", color=VERMILLION, markersize=4),
}
NOTE = (
    "Right: the effect of the departures and its interval. All intervals of a metric hold together "
    "with 95%; there is none for fewer than three seeds."
)


def departures_figure(found: Sequence[Effect]) -> Figure:
    """Draw a block of rows for each benchmark, mode and setting, and a column per metric."""
    blocks: dict[tuple[str, str, Setting], list[Effect]] = {}
    for each in found:
        setting = Setting(each.lr, each.batch_size)
        blocks.setdefault((each.benchmark, each.mode, setting), []).append(each)
    heights = [HEAD + ROW * len(_rows(block)) for block in blocks.values()]
    with mpl.rc_context(STYLE):
        figure = empty_figure(DOUBLE, sum(heights) + 0.25)
        panels = figure.subplots(len(blocks), 2, squeeze=False, height_ratios=heights)
        for line, (place, block) in zip(panels, blocks.items(), strict=True):
            title = "{}, {} ({})".format(title_of(place[0]), *place[1:])
            for axes, metric in zip(line, METRICS, strict=True):
                _draw(axes, [each for each in block if each.metric == metric], _rows(block))
                axes.set_title(f"{title}: {metric.upper()} (%)", loc="left")
            line[1].set_yticklabels([])
        figure.legend(
            MARKS.values(),
            MARKS,
            loc="outside upper center",
            ncols=3,
            fontsize=LARGE,
            borderpad=0.2,
        )
        add_note(figure, [" ".join([NOTE, *explained(found)])])
    return figure


def _rows(effects: Sequence[Effect]) -> list[str]:
    return list(dict.fromkeys(map(_label, effects)))


def _label(effect: Effect) -> str:
    return f"{effect.method}: {', '.join(effect.departures)}"


def _draw(axes: Axes, effects: Sequence[Effect], rows: Sequence[str]) -> None:
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.spines["left"].set_visible(False)
    for each in effects:
        y = rows.index(_label(each))
        axes.axhline(y, color=PALE, linewidth=0.3, zorder=0)
        axes.plot([each.text, each.code], [y, y], color=BLUE, linewidth=1.5, alpha=0.5, zorder=1)
        axes.plot(each.code, y, "o", color=BLUE, markersize=6)
        axes.plot(each.text, y, "o", color=BLUE, markersize=6, markerfacecolor="white")
        address = (each.benchmark, each.mode, each.method, each.metric, each.lr, each.batch_size)
        if each.comparable and (number := printed(*address)):
            axes.errorbar(
                number.mean, y, xerr=number.error, fmt="D", color=VERMILLION, markersize=3, zorder=3
            )
        axes.annotate(
            _text(each),
            (1.0, y),
            xycoords=("axes fraction", "data"),
            va="center",
            color=BLACK,
        )
    axes.margins(x=0.08)


def _text(effect: Effect) -> str:
    interval = " to ".join(signed(end) for end in effect.interval or ())
    return f"  {signed(effect.effect)}" + (f"\n  ({interval})" if interval else "")
