"""Groups as figures draw them: their labels, looks and timeline, in one stack or in several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.figure import Figure

from twofold.compare.groups import Group
from twofold.drawing.curves import Task, Timeline
from twofold.drawing.panels import Series, stacks_figure
from twofold.drawing.style import Style, looks, told_apart
from twofold.experiments.naming import canonical, colour_name
from twofold.experiments.plotting import any_projected, labelled, mean_notes, series, timeline_of
from twofold.experiments.runs import Run
from twofold.report.figures.notes import notes

ADVICE = "choose with the options iterations or methods"

Labels = Mapping[str, str]  # by method


def group_timeline(groups: Sequence[Group], task: Task) -> Timeline:
    """Return the timeline that all runs share."""
    return timeline_of([run for group in groups for run in group.runs], task, ADVICE)


def labels_of(groups: Sequence[Group], labels: Labels | None = None) -> dict[str, str]:
    """Return the label of each group by its method: its own in `labels`, or the method's text."""
    config = groups[0].config
    given = {
        canonical(method, config.benchmark, config.profile): label
        for method, label in (labels or {}).items()
    }
    return labelled([group.config.method for group in groups], given)


def styles_of(groups: Sequence[Group], among: Iterable[Run] = ()) -> dict[str, Style]:
    """Return the look of each group by its method, as if it were alone in its panel.

    among: all runs of the store, so that colours do not depend on what is shown.
    """
    names = {group.config.method: colour_name(group.config) for group in groups}
    styles = looks(names.values(), {colour_name(run.config) for run in among})
    return {method: styles[name] for method, name in names.items()}


def stacks(
    groups: Sequence[Group],
    task: Task = 1,
    labels: Labels | None = None,
    among: Iterable[Run] = (),
    title: Callable[[Group], str] = lambda group: group.objective,
) -> dict[str, list[Series]]:
    """Return the series of each stack by its title. In a stack, no two look alike."""
    names, styles = labels_of(groups, labels), styles_of(groups, among)
    members: dict[str, list[Group]] = {}
    for group in groups:
        members.setdefault(title(group), []).append(group)
    return {
        heading: [
            series(group.runs, task, names[group.config.method], style)
            for group, style in zip(
                stack, told_apart(styles[group.config.method] for group in stack), strict=True
            )
        ]
        for heading, stack in members.items()
    }


def one_stack(
    groups: Sequence[Group],
    task: Task = 1,
    zoom: int | None = None,
    labels: Labels | None = None,
    among: Iterable[Run] = (),
    zoomed: bool = True,
    title: str = "",
) -> Figure:
    """Draw all methods in one stack, with the share of projections if there were any."""
    timeline = group_timeline(groups, task)
    drawn = stacks(groups, task, labels, among, lambda _: title)
    share = any_projected(drawn[title])
    below = [*notes(groups, labels_of(groups, labels)), *mean_notes(task)]
    return stacks_figure(drawn, timeline, below, zoomed, share, zoom)
