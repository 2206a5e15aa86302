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

from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions
from twofold.compare.reference import Printed, printed
from twofold.compare.selection import method_groups
from twofold.compare.shelf import essence
from twofold.drawing.curves import Task
from twofold.drawing.panels import Series, Stack, accuracy_limits, explain, zoom_reach
from twofold.drawing.style import BLACK, PALE, SINGLE, STYLE, Style, empty_figure
from twofold.experiments.config import Config, configure
from twofold.experiments.naming import canonical
from twofold.experiments.plotting import mean_notes, series
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.notes import notes
from twofold.report.figures.series import group_timeline, labels_of

PLAIN = "er"
GAMMAS = (0.0, 0.05, 0.1, 0.5, 0.8, 1.0)
FAINT: Style = {"color": PALE, "fmt": "D", "markersize": 2.5, "zorder": 1}
BELOW = 1.35  # inches of the panels of MIN and AVG
COMPARED = "grey diamonds: the paper's values; dotted: its er"


def _method(gamma: float) -> str:
    return f"er+gem(gamma={gamma},when=always)"


def _gamma(config: Config) -> float | None:
    """Return the gamma of ER+GEM that always projects and is otherwise as usual, or None."""
    if [name for name, _ in config.components] != ["er", "gem"]:
        return None
    gamma = float(config.components[1][1]["gamma"])
    default = canonical(_method(gamma), config.benchmark, config.profile)
    return gamma if config.method == default else None


def studied(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of ER+GEM with any gamma, and those of ER to compare with."""
    gem = [run for run in runs if _gamma(run.config) is not None]
    return gem and gem + [run for run in runs if run.config.method == PLAIN]


@figure(
    "gamma",
    "ER+GEM over its gamma: accuracy on a task, MIN and AVG, beside ER and the paper",
    [PLAIN, *map(_method, GAMMAS)],
    studied,
)
def gamma_figure(runs: Sequence[Run], task: Task = 1, zoom: int | None = None) -> Figure:
    """Draw the accuracy on `task` for each gamma, and MIN and AVG over gamma below it.

    There, bars are standard errors over seeds, and the band is plain ER's mean and standard error.
    The paper's own values are faint, if it has any for this setting.
    """
    groups = method_groups(runs)
    timeline = group_timeline(groups, task)
    gem, plain = _groups(groups)
    colours = _colours(gem)
    drawn = [_series(group, task, PLAIN, BLACK) for group in plain]
    drawn += [_series(gem[gamma], task, f"γ = {gamma:g}", colours[gamma]) for gamma in gem]
    limits, reach = accuracy_limits(drawn, timeline), zoom_reach(drawn, timeline, zoom)
    stack = Stack(timeline, limits, SINGLE, reach, share=False)
    with mpl.rc_context(STYLE):
        picture = empty_figure(SINGLE, stack.height + BELOW)
        heights = [stack.height, BELOW]
        above, below = picture.subfigures(2, 1, squeeze=False, height_ratios=heights).flat
        stack.draw(above, drawn)
        for axes, metric in zip(below.subplots(1, 2), ("min", "avg"), strict=True):
            axes.set(title=f"{metric.upper()} (%)", xlabel="γ", label=metric)
            axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            _draw_runs(axes, metric, gem, plain, colours)
            _draw_reference(axes, metric, gem, plain)
        shown = [*plain, *gem.values()]
        compared = any(_printed(group, "avg") for group in shown)
        below = [*notes(shown, labels_of(shown)), *mean_notes(task), *[COMPARED] * compared]
        explain(picture, drawn, below)
    return picture


def _groups(groups: Sequence[Group]) -> tuple[dict[float, Group], list[Group]]:
    """Return ER+GEM by gamma, and ER if it is there."""
    by_gamma = {gamma: group for group in groups if (gamma := _gamma(group.config)) is not None}
    plain = [group for group in groups if group.config.method == PLAIN]
    return {gamma: by_gamma[gamma] for gamma in sorted(by_gamma)}, plain


def _colours(gem: Mapping[float, Group]) -> dict[float, str]:
    """Return colours from dark to bright."""
    shades = mpl.colormaps["viridis"](np.linspace(0.15, 0.9, len(gem)))
    return {gamma: to_hex(shade) for gamma, shade in zip(gem, shades, strict=True)}


def _series(group: Group, task: Task, label: str, colour: str) -> Series:
    return series(group.runs, task, label, {"color": colour, "linestyle": "-"}, share=False)


def _draw_runs(
    axes: Axes,
    metric: str,
    gem: Mapping[float, Group],
    plain: Sequence[Group],
    colours: Mapping[float, str],
) -> None:
    """Draw points with standard errors, and plain ER as a line and a band."""
    means = [group.mean(metric) for group in gem.values()]
    axes.plot([*gem], [nan if mean is None else mean for mean in means], color=PALE, zorder=1)
    for (gamma, group), mean in zip(gem.items(), means, strict=True):
        if mean is not None:
            error = group.error(metric)
            axes.errorbar(gamma, mean, error, fmt="o", markersize=3, color=colours[gamma])
    for group in plain:
        mean, error = group.mean(metric), group.error(metric)
        if mean is not None:
            axes.axhline(mean, color=BLACK, linewidth=0.8, zorder=0)
            axes.axhspan(mean - (error or 0), mean + (error or 0), color=BLACK, alpha=0.15, lw=0)


def _draw_reference(
    axes: Axes, metric: str, gem: Mapping[float, Group], plain: Sequence[Group]
) -> None:
    for gamma, group in gem.items():
        if number := _printed(group, metric):
            axes.errorbar(gamma, number.mean, number.error, **FAINT)
    for group in plain:
        if number := _printed(group, metric):
            axes.axhline(number.mean, color=PALE, linewidth=0.8, linestyle=":", zorder=0)


def _printed(group: Group, metric: str) -> Printed | None:
    """Return the paper's value for the same configuration, unless the runs are shortened."""
    config = group.config
    place = config.benchmark, config.mode, config.method
    number = printed(*place, metric, config.lr, config.batch_size, paper="hess2024")
    if number is None:
        return None
    default = configure(config.benchmark, config.method, mode=config.mode, profile=config.profile)
    comparable = essence(default) == essence(config) and Reductions.of(group).comparable(metric)
    return number if comparable else None
