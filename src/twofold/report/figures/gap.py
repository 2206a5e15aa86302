"""Stability gaps: a column per objective, a colour per routine."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twofold.compare.selection import method_groups
from twofold.drawing.panels import Series, stacks_figure
from twofold.drawing.style import looks
from twofold.experiments.plotting import series
from twofold.experiments.runs import Run
from twofold.report.figures.base import figure, preferred
from twofold.report.figures.notes import notes
from twofold.report.figures.series import group_timeline


@figure(
    "gap",
    "accuracy on a task while later ones are learned; objectives side by side",
    ["er"],
    preferred("gap"),
    any_method=True,
)
def gap_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """Draw the accuracy on `task` from its start on: a column per objective, a colour per routine.

    On top are the first 50 iterations after each task switch, from the last evaluation before it
    (0), or fewer if tasks are shorter or evaluation was dense for fewer iterations. In the middle
    is the whole curve, below it the share of runs whose gradient was projected. Lines are means
    over seeds, bands standard errors. The accuracy axes are all alike and fit the curves after the
    first switch, so that a task's first climb from chance may begin below them.
    """
    groups = method_groups(runs)
    styles = looks(sorted({each.routines for each in groups}, key=lambda how: (how != "sgd", how)))
    timeline = group_timeline(groups, task)
    stacks: dict[str, list[Series]] = {}
    for group in groups:
        lines = series(group.runs, task, group.routines, styles[group.routines])
        stacks.setdefault(group.objective, []).append(lines)
    return stacks_figure(stacks, timeline, notes(groups))
