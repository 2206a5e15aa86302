"""Groups as figures draw them: the timeline that they share, and all of them in one stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from twofold.compare.groups import Group
from twofold.drawing.curves import Timeline
from twofold.drawing.panels import stacks_figure
from twofold.drawing.style import looks
from twofold.experiments.plotting import any_projected, series, timeline_of
from twofold.report.figures.notes import notes

ADVICE = "choose with the options iterations or methods"


def group_timeline(groups: Sequence[Group], task: int) -> Timeline:
    """Return the timeline that all runs share."""
    return timeline_of([run for group in groups for run in group.runs], task, ADVICE)


def one_stack(
    groups: Sequence[Group],
    task: int,
    zoomed: bool = True,
    title: str = "",
    label: Callable[[Group], str] = lambda group: group.config.method,
) -> Figure:
    """Draw all methods in one stack, with the share of projections if there were any."""
    timeline = group_timeline(groups, task)
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
        series(group.runs, task, label(group), style)
        for group, style in zip(groups, looks(names).values(), strict=True)
    ]
    share = any_projected(drawn)
    return stacks_figure({title: drawn}, timeline, notes(groups), zoomed, share)
