"""Appendix D: the influence of GEM's gamma, which favours the reference gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from twofold.experiments.config import Config, configure
from twofold.experiments.naming import canonical
from twofold.experiments.runs import Run
from twofold.report.cells import Cell
from twofold.report.figures.base import figure
from twofold.report.figures.curves import Timeline, accuracy_curve
from twofold.report.figures.panels import Column, Series, accuracy_limits, explain, zoom_reach
from twofold.report.figures.picking import method_cells
from twofold.report.figures.style import BLACK, PALE, SINGLE, STYLE, Style, empty_figure
from twofold.report.paper import Printed, printed
from twofold.report.selection import Reductions, essence

PLAIN = "er"
GAMMAS = (0.0, 0.05, 0.1, 0.5, 0.8, 1.0)
FAINT: Style = {"color": PALE, "fmt": "D", "markersize": 2.5, "zorder": 1}
BELOW = 1.35  # inches of the panels of MIN and AVG


def _method(gamma: float) -> str:
    return f"er+gem(gamma={gamma},when=always)"


def _gamma(config: Config) -> float | None:
    """Of ER+GEM that projects always and is otherwise as usual; None for other methods."""
    if [name for name, _ in config.components] != ["er", "gem"]:
        return None
    gamma = float(config.components[1][1]["gamma"])
    usual = canonical(_method(gamma), config.benchmark, config.profile)
    return gamma if config.method == usual else None


def studied(runs: Sequence[Run]) -> list[Run]:
    """ER+GEM with any gamma; and ER, to compare with."""
    gem = [run for run in runs if _gamma(run.config) is not None]
    return gem and gem + [run for run in runs if run.config.method == PLAIN]


@figure(
    "gamma",
    "ER+GEM over its gamma: accuracy on a task, MIN and AVG, beside ER and the paper",
    [PLAIN, *map(_method, GAMMAS)],
    studied,
)
def gamma_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """The accuracy on `task` for each gamma; below MIN and AVG over gamma.

    There, bars are standard errors over seeds, the band is plain ER's mean and standard error, and
    the paper's own values are faint, where it has any for this setting.
    """
    cells = method_cells(runs)
    timeline = Timeline.of(cells, task)
    gem, plain = _series(cells, task)
    series = [*plain, *gem.values()]
    limits, reach = accuracy_limits(series, timeline), zoom_reach(series, timeline)
    column = Column(timeline, limits, SINGLE, reach, share=False)
    with mpl.rc_context(STYLE):
        drawn = empty_figure(SINGLE, column.height + BELOW)
        heights = [column.height, BELOW]
        above, below = drawn.subfigures(2, 1, squeeze=False, height_ratios=heights).flat
        column.draw(above, series)
        for axes, metric in zip(below.subplots(1, 2), ("min", "avg"), strict=True):
            axes.set(title=f"{metric.upper()} (%)", xlabel="γ", label=metric)
            axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            _draw_runs(axes, metric, gem, plain)
            _draw_paper(axes, metric, gem, plain)
        compared = any(_printed(one.cell, "avg") for one in series)
        explain(drawn, series, *["grey diamonds: the paper's values; dotted: its er"] * compared)
    return drawn


def _series(cells: Sequence[Cell], task: int) -> tuple[dict[float, Series], list[Series]]:
    """ER+GEM by gamma, from dark to bright; ER, if it is there."""
    found = {gamma: cell for cell in cells if (gamma := _gamma(cell.config)) is not None}
    shades = mpl.colormaps["viridis"](np.linspace(0.15, 0.9, len(found)))
    gem = {
        gamma: _one(found[gamma], task, f"γ = {gamma:g}", to_hex(shade))
        for gamma, shade in zip(sorted(found), shades, strict=True)
    }
    plain = [cell for cell in cells if cell.config.method == PLAIN]
    return gem, [_one(cell, task, PLAIN, BLACK) for cell in plain]


def _one(cell: Cell, task: int, label: str, colour: str) -> Series:
    style = {"color": colour, "linestyle": "-"}
    return Series(cell, accuracy_curve(cell, task), label, style)


def _draw_runs(
    axes: Axes, metric: str, gem: Mapping[float, Series], plain: Sequence[Series]
) -> None:
    """Points with standard errors; plain ER as a line and a band."""
    means = [one.cell.mean(metric) for one in gem.values()]
    axes.plot([*gem], [nan if mean is None else mean for mean in means], color=PALE, zorder=1)
    for (gamma, one), mean in zip(gem.items(), means, strict=True):
        if mean is not None:
            error = one.cell.error(metric)
            axes.errorbar(gamma, mean, error, fmt="o", markersize=3, color=one.style["color"])
    for one in plain:
        mean, error = one.cell.mean(metric), one.cell.error(metric)
        if mean is not None:
            axes.axhline(mean, color=BLACK, linewidth=0.8, zorder=0)
            axes.axhspan(mean - (error or 0), mean + (error or 0), color=BLACK, alpha=0.15, lw=0)


def _draw_paper(
    axes: Axes, metric: str, gem: Mapping[float, Series], plain: Sequence[Series]
) -> None:
    for gamma, one in gem.items():
        if number := _printed(one.cell, metric):
            axes.errorbar(gamma, number.mean, number.error, **FAINT)
    for one in plain:
        if number := _printed(one.cell, metric):
            axes.axhline(number.mean, color=PALE, linewidth=0.8, linestyle=":", zorder=0)


def _printed(cell: Cell, metric: str) -> Printed | None:
    """The paper's value for what these runs are, shortened ones excepted."""
    config = cell.config
    number = printed(
        config.benchmark, config.mode, config.method, metric, config.lr, config.batch_size
    )
    if number is None:
        return None
    usual = configure(config.benchmark, config.method, mode=config.mode, profile=config.profile)
    alike = essence(usual) == essence(config) and Reductions.of(cell).comparable(metric)
    return number if alike else None
