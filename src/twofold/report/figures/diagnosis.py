"""Diagnosis: what the steps after a switch do to the old loss, a column per method."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.drawing.curves import Array
from twofold.drawing.panels import ZOOM
from twofold.drawing.style import (
    BLACK,
    BLUE,
    DIM,
    DOUBLE,
    GREEN,
    PALE,
    STYLE,
    VERMILLION,
    Style,
    add_legend,
    add_note,
    empty_figure,
    wrapped,
)
from twofold.errors import UserError
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure
from twofold.report.figures.notes import training_notes
from twofold.report.figures.series import Labels, labels_of
from twofold.statistics import means_and_errors

COLUMN, HEIGHT = 1.7, 1.13  # inches: of a method at least, and of a lower row
UPPER = 2  # heights of the upper row
COSINE = "old_cosine"
CURVATURE = "old_curvature"
LINES: dict[str, tuple[str, Style]] = {  # by column: what it is called, and its look
    "old_change": ("actual change", {"color": BLACK, "linewidth": 1.6}),
    "old_predicted": ("first order, <grad L, s>", {"color": BLUE}),
    "old_direct": ("the same without momentum", {"color": BLUE, "linestyle": "--"}),
    "old_second": ("second order, ½ s'Hs", {"color": VERMILLION}),
}
BELOW: dict[str, tuple[str, Style]] = {  # the same for the lower rows, if runs have the columns
    COSINE: ("cosine of\ng and grad L", {"color": DIM}),
    CURVATURE: ("curvature along\nthe step, s'Hs / s's", {"color": VERMILLION}),
}
STATISTICS = "old_statistics"  # only networks with batch norm have it
MOVED = ("batch norm's statistics, in addition", {"color": GREEN, "linestyle": ":"})
NOTE = (
    "L is the loss on 256 training images of past tasks, drawn anew for every step, in evaluation "
    "mode; s is a step, g the objective's gradient, and H the mean Hessian of L along s."
)


def diagnosed(runs: Sequence[Run]) -> list[Run]:
    """Return the runs whose curves have what the figure shows."""
    return [run for run in runs if {COSINE, *LINES} <= run.columns.keys()]


@figure(
    "diagnosis",
    "what the steps after a switch do to the loss on old data; a column per method",
    ["er", "er+gem", "er+hold"],
    diagnosed,
    command=["--diagnose"],
)
def diagnosis_figure(
    runs: Sequence[Run], task: int = 2, zoom: int = ZOOM, labels: Labels | None = None
) -> Figure:
    """Draw what each step after a switch does to the old loss.

    Changes are cumulated from the switch on. The cosine of gradients and, if all runs have it, the
    curvature along the step are drawn as they are.

    task: the task that begins with the switch.
    zoom: how many iterations after it are shown.
    """
    groups = method_groups(runs)
    _check(groups, task, zoom)
    names = labels_of(groups, labels)
    lines = LINES | ({STATISTICS: MOVED} if _have(groups, STATISTICS) else {})
    below = {column: row for column, row in BELOW.items() if _have(groups, column)}
    heights = (UPPER, *(1 for _ in below))
    with mpl.rc_context(STYLE):
        drawn = empty_figure(max(DOUBLE, COLUMN * len(groups)), HEIGHT * sum(heights))
        panels = drawn.subplots(
            *(len(heights), len(groups)),
            squeeze=False,
            sharex=True,
            sharey="row",
            height_ratios=heights,
        )
        room = drawn.get_figwidth() / len(groups) - 0.4
        for (upper, *lower), group in zip(panels.T, groups, strict=True):
            upper.set_title(wrapped(names[group.config.method], room), fontweight="bold")
            for column, (_, style) in reversed(lines.items()):
                _draw(upper, _after_switch(group, column, task, zoom).cumsum(axis=1), style)
            for axes, (column, (_, style)) in zip(lower, below.items(), strict=True):
                _draw(axes, _after_switch(group, column, task, zoom), style)
            lower[-1].set_xlabel("iterations after the switch")
        for axes in panels.flat:
            axes.axhline(0, color=PALE, linewidth=0.5, zorder=0)
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
        panels[0, 0].set_ylabel("change of the old loss,\ncumulated")
        for axes, (title, _) in zip(panels[1:, 0], below.values(), strict=True):
            axes.set_ylabel(title)
        drawn.align_ylabels(panels[:, 0])
        add_legend(drawn, {name: _short(style) for name, style in lines.values()})
        about = f"{NOTE} Shown: the switch to task {task}."
        add_note(drawn, [about, *training_notes(groups, names)])
    return drawn


def _check(groups: Sequence[Group], task: int, zoom: int) -> None:
    last = min(int(group.runs[0].columns["task"].max()) for group in groups)
    if last < 2:
        raise UserError("the figure diagnosis needs runs with at least two tasks")
    if not isinstance(task, int) or not 2 <= task <= last:
        raise UserError(f"task must be one that begins with a switch, from 2 to {last}, not {task}")
    if not isinstance(zoom, int) or zoom < 1:
        raise UserError(f"zoom must be a whole number of iterations from 1 on, not {zoom}")


def _have(groups: Sequence[Group], column: str) -> bool:
    return all(column in run.columns for group in groups for run in group.runs)


def _after_switch(group: Group, column: str, task: int, zoom: int) -> Array:
    """Return a column of the first iterations of a task: a row per seed."""
    return np.stack(
        [run.columns[column][run.columns["task"] == task][:zoom] for run in group.runs]
    ).astype(float)


def _draw(axes: Axes, values: Array, style: Style) -> None:
    """Draw the mean over seeds, and its standard error as a band."""
    mean, error = means_and_errors(values)
    x = np.arange(1, len(mean) + 1)
    axes.plot(x, mean, **style)
    if error is not None:
        axes.fill_between(
            x, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0
        )


def _short(style: Style) -> Style:
    return {name: value for name, value in style.items() if name != "linewidth"}
