"""Series from groups: what figures and the page draw of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from twofold.compare.groups import Group
from twofold.drawing.curves import Array, Curve, Timeline, mean_curve
from twofold.drawing.panels import ZOOM, Series, stacks_figure
from twofold.drawing.style import Style, looks
from twofold.errors import UserError
from twofold.report.figures.notes import notes


def accuracy_curve(group: Group, task: int) -> Curve:
    """Return the accuracy on a task, which is evaluated from its start on."""
    return mean_curve(np.stack([run.accuracy[:, task - 1] for run in group.runs]))


def projected_share(group: Group) -> Array:
    """Return the share of the runs whose gradient was projected, at every iteration."""
    flags = np.stack([run.columns["projected"] for run in group.runs]).astype(float)
    share: Array = flags.mean(axis=0)
    return share


def timeline_of(groups: Sequence[Group], task: int) -> Timeline:
    """Return the timeline that all runs share."""
    runs = [run for group in groups for run in group.runs]
    learned = runs[0].columns["task"]
    if any(not np.array_equal(learned, run.columns["task"]) for run in runs):
        lengths = dict.fromkeys(f"{run.config.method} {len(run.columns['task'])}" for run in runs)
        raise UserError(
            f"the runs differ in length ({', '.join(lengths)}): "
            "choose with the options iterations or methods"
        )
    return Timeline.of(learned, task)


def series(group: Group, task: int, label: str, style: Style, share: bool = True) -> Series:
    """Return a group as it is drawn; share: with the share of projected gradients."""
    # If evaluation is never dense, there is nothing better to show than the few points there are.
    dense = ZOOM if group.complete else group.schedule.dense or ZOOM
    projected = projected_share(group) if share else None
    return Series(accuracy_curve(group, task), label, style, projected, dense)


def one_stack(
    groups: Sequence[Group],
    task: int,
    zoomed: bool = True,
    title: str = "",
    label: Callable[[Group], str] = lambda group: group.config.method,
) -> Figure:
    """Draw all methods in one stack, with the share of projections if there were any."""
    timeline = timeline_of(groups, task)
    routines = [group.routines for group in groups]
    # The first method with a routine has the routine's colour, and no two look alike. Others go by
    # what and how, since a method may be called like its routine: `gem` is finetune+gem.
    names = [
        group.routines
        if routines.index(group.routines) == place
        else f"{group.objective}+{group.routines}"
        for place, group in enumerate(groups)
    ]
    drawn = [
        series(group, task, label(group), style)
        for group, style in zip(groups, looks(names).values(), strict=True)
    ]
    share = any(one.share is not None and one.share.any() for one in drawn)
    return stacks_figure({title: drawn}, timeline, notes(groups), zoomed, share)
