"""Runs as a picture: the accuracy on one task while later ones are learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from twofold.curves import ACCURACY
from twofold.drawing.curves import Array, Curve, Task, Timeline, mean_curve
from twofold.drawing.panels import ZOOM, Series, stacks_figure
from twofold.drawing.style import Style, looks, told_apart
from twofold.errors import UserError
from twofold.experiments.config import setting_words, varying
from twofold.experiments.naming import colour_name
from twofold.statistics import FEWEST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.experiments.runs import Run


MEAN = "the mean is over the tasks that have begun: a new one, not learned yet, lowers it at once"


class View(TypedDict, total=False):
    """What a picture shows of runs, besides the task."""

    zoom: int | None  # iterations after a switch
    labels: Mapping[str, str] | None  # what to write instead of names


def draw(
    named: Mapping[str, Sequence[Run]],
    task: Task = 1,
    zoom: int | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draw runs by name: lines are means over the runs of a name, bands standard errors.

    On top are the first iterations after each task switch, below the whole curves. Lines of one
    method have its colour, unless there is no other method.

    zoom: iterations after a switch that the zooms show.
    labels: what to write instead of these names.
    """
    runs = [run for group in named.values() for run in group]
    if not runs:
        raise UserError("a figure needs at least one run")
    timeline = timeline_of(runs, task, "select some of them")
    names = labelled(named, labels or {})
    keys = [colour_name(group[0].config) for group in named.values()]
    keys = keys if len({run.config.method for run in runs}) > 1 or len(keys) == 1 else [*named]
    styles = looks(keys)
    drawn = [
        series(group, task, names[name], style)
        for (name, group), style in zip(
            named.items(), told_apart(styles[key] for key in keys), strict=True
        )
    ]
    place = [_shared(runs, name) for name in ("benchmark", "mode")]
    seeds = seed_words({names[name]: len(group) for name, group in named.items()})
    note = ": ".join(filter(None, [", ".join(filter(None, place)), seeds]))
    notes = [note, *mean_notes(task)]
    return stacks_figure({"": drawn}, timeline, notes, share=any_projected(drawn), zoom=zoom)


def by_setting(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return runs by their method and by the settings in which they differ: `er, lr 0.1`."""
    runs = list(runs)
    differing = varying([run.config for run in runs], ("method", "seed"))
    named: dict[str, list[Run]] = {}
    for run in runs:
        name = ", ".join([run.config.method, *setting_words(run.config, differing)])
        named.setdefault(name, []).append(run)
    return named


def labelled(names: Iterable[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return the label of each name: its own in `labels`, or the name itself."""
    names = list(names)
    for name, label in labels.items():
        if name not in names:
            shown = ", ".join(names)
            raise UserError(f"no label can be given to {name!r}: the figure shows {shown}")
        if not label.strip():
            raise UserError(f"the label of {name} is empty")
    result = {name: labels.get(name, name) for name in names}
    for label, count in Counter(result.values()).items():
        if count > 1:
            raise UserError(f"the label {label!r} is that of {count} lines: make them differ")
    return result


def accuracy_curve(runs: Sequence[Run], task: Task) -> Curve:
    """Return the accuracy on a task, which is evaluated from its start on, or the mean."""
    return mean_curve(np.stack([accuracies(run, task) for run in runs]))


def accuracies(run: Run, task: Task) -> Array:
    """Return the accuracy on a task at every iteration, or the mean over the tasks begun by then.

    It is NaN where a task was not evaluated.
    """
    if task != "mean":
        column: Array = run.accuracy[:, task - 1]
        return column
    begun = np.arange(1, run.accuracy.shape[1] + 1) <= run.columns["task"][:, None]
    mean: Array = np.where(begun, run.accuracy, 0).sum(axis=1) / begun.sum(axis=1)
    return mean


def mean_notes(task: Task) -> list[str]:
    """Return how to read the mean over tasks, if it is shown."""
    return [MEAN] if task == "mean" else []


def quantity_of(run: Run, task: Task) -> str:
    """Return what was measured on a task, or on all of them."""
    if task != "mean":
        return run.quantity(task)
    quantities = {run.quantity(k): None for k in range(1, run.accuracy.shape[1] + 1)}
    if len(quantities) > 1:
        raise UserError(f"{' and '.join(quantities)} have no mean: choose one task")
    return next(iter(quantities))


def projected_share(runs: Sequence[Run]) -> Array:
    """Return the share of the runs whose gradient was projected, at every iteration."""
    flags = np.stack([run.columns["projected"] for run in runs]).astype(float)
    share: Array = flags.mean(axis=0)
    return share


def series(runs: Sequence[Run], task: Task, label: str, style: Style, share: bool = True) -> Series:
    """Return runs of one setting as they are drawn.

    share: with the share of projected gradients.
    """
    schedule = runs[0].config.schedule
    # If evaluation is never dense, there is nothing better to show than the few points there are.
    dense = ZOOM if schedule.complete else schedule.dense or ZOOM
    projected = projected_share(runs) if share else None
    quantity = quantity_of(runs[0], task)
    words = "accuracy (%)" if quantity == ACCURACY else quantity
    return Series(accuracy_curve(runs, task), label, style, projected, words, dense)


def any_projected(drawn: Sequence[Series]) -> bool:
    """Return whether there is a projected gradient to show."""
    return any(one.share is not None and one.share.any() for one in drawn)


def timeline_of(runs: Sequence[Run], task: Task, advice: str) -> Timeline:
    """Return the timeline that all runs share.

    advice: what to do if they share none, for the error.
    """
    learned = runs[0].columns["task"]
    if any(not np.array_equal(learned, run.columns["task"]) for run in runs):
        lengths = dict.fromkeys(f"{run.config.method} {len(run.columns['task'])}" for run in runs)
        raise UserError(f"the runs differ in length ({', '.join(lengths)}): {advice}")
    return Timeline.of(learned, task)


def seed_words(counts: Mapping[str, int]) -> str:
    """Return `mean ± standard error over 5 seeds (joint 3)`, or `mean over 2 seeds`.

    counts: the number of seeds by name.
    """
    most = max(counts.values())
    if most == 1:
        return "one seed"
    counts_text = [f"{name} {count}" for name, count in counts.items() if count < most]
    number = "mean ± standard error" if most >= FEWEST else "mean"
    return f"{number} over {most} seeds" + (f" ({', '.join(counts_text)})" if counts_text else "")


def _shared(runs: Sequence[Run], name: str) -> str:
    """Return the value of an option that all runs have, or nothing."""
    values = {str(getattr(run.config, name)) for run in runs}
    return values.pop() if len(values) == 1 else ""
