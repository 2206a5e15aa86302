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

COLUMN, HEIGHT = 1.7, 3.4  # inches: of a method at least, and of both rows
COSINE = "old_cosine"
LINES: dict[str, tuple[str, Style]] = {  # by column: what it is called, and its look
    "old_change": ("actual change", {"color": BLACK, "linewidth": 1.6}),
    "old_predicted": ("first order, <grad L, s>", {"color": BLUE}),
    "old_direct": ("the same without momentum", {"color": BLUE, "linestyle": "--"}),
    "old_second": ("second order, ½ s'Hs", {"color": VERMILLION}),
}
STATISTICS = "old_statistics"  # only networks with batch norm have it
MOVED = ("batch norm's statistics, in addition", {"color": GREEN, "linestyle": ":"})
NOTE = (
    "L is the loss on 256 training images of past tasks, drawn anew for every step, in evaluation "
    "mode; s is a step, g the objective's gradient."
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
    """Draw the change of the old loss, cumulated from a switch on, and the cosine of gradients.

    task: the task that begins with the switch.
    zoom: how many iterations after it are shown.
    """
    groups = method_groups(runs)
    _check(groups, task, zoom)
    names = labels_of(groups, labels)
    lines = LINES | ({STATISTICS: MOVED} if _have(groups, STATISTICS) else {})
    with mpl.rc_context(STYLE):
        drawn = empty_figure(max(DOUBLE, COLUMN * len(groups)), HEIGHT)
        panels = drawn.subplots(
            *(2, len(groups)), squeeze=False, sharex=True, sharey="row", height_ratios=(2, 1)
        )
        room = drawn.get_figwidth() / len(groups) - 0.4
        for (upper, lower), group in zip(panels.T, groups, strict=True):
            upper.set_title(wrapped(names[group.config.method], room), fontweight="bold")
            for column, (_, style) in reversed(lines.items()):
                _draw(upper, _after_switch(group, column, task, zoom).cumsum(axis=1), style)
            _draw(lower, _after_switch(group, COSINE, task, zoom), {"color": DIM})
            for axes in (upper, lower):
                axes.axhline(0, color=PALE, linewidth=0.5, zorder=0)
                axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
            lower.set_xlabel("iterations after the switch")
        panels[0, 0].set_ylabel("change of the old loss,\ncumulated")
        panels[1, 0].set_ylabel("cosine of\ng and grad L")
        drawn.align_ylabels(panels[:, 0])
        add_legend(drawn, {name: _short(style) for name, style in lines.values()})
        below = f"{NOTE} Shown: the switch to task {task}."
        add_note(drawn, [below, *training_notes(groups, names)])
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
