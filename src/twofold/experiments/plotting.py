"""Runs as a picture: the accuracy on one task while later ones are learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.curves import ACCURACY
from twofold.drawing.curves import Array, Curve, Timeline, mean_curve
from twofold.drawing.panels import ZOOM, Series, stacks_figure
from twofold.drawing.style import Style, looks
from twofold.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.experiments.runs import Run


def draw(named: Mapping[str, Sequence[Run]], task: int) -> Figure:
    """Draw runs by name: lines are means over the runs of a name, bands standard errors.

    On top are the first iterations after each task switch, below the whole curves.
    """
    runs = [run for group in named.values() for run in group]
    if not runs:
        raise UserError("a figure needs at least one run")
    timeline = timeline_of(runs, task, "select some of them")
    styles = looks(named)
    drawn = [series(group, task, name, styles[name]) for name, group in named.items()]
    place = [_shared(runs, name) for name in ("benchmark", "mode")]
    seeds = seed_words({name: len(group) for name, group in named.items()})
    note = ": ".join(filter(None, [", ".join(filter(None, place)), seeds]))
    return stacks_figure({"": drawn}, timeline, [note], share=any_projected(drawn))


def accuracy_curve(runs: Sequence[Run], task: int) -> Curve:
    """Return the accuracy on a task, which is evaluated from its start on."""
    return mean_curve(np.stack([run.accuracy[:, task - 1] for run in runs]))


def projected_share(runs: Sequence[Run]) -> Array:
    """Return the share of the runs whose gradient was projected, at every iteration."""
    flags = np.stack([run.columns["projected"] for run in runs]).astype(float)
    share: Array = flags.mean(axis=0)
    return share


def series(runs: Sequence[Run], task: int, label: str, style: Style, share: bool = True) -> Series:
    """Return runs of one setting as they are drawn.

    share: with the share of projected gradients.
    """
    schedule = runs[0].config.schedule
    # If evaluation is never dense, there is nothing better to show than the few points there are.
    dense = ZOOM if schedule.complete else schedule.dense or ZOOM
    projected = projected_share(runs) if share else None
    quantity = runs[0].quantity(task)
    words = "accuracy (%)" if quantity == ACCURACY else quantity
    return Series(accuracy_curve(runs, task), label, style, projected, words, dense)


def any_projected(drawn: Sequence[Series]) -> bool:
    """Return whether there is a projected gradient to show."""
    return any(one.share is not None and one.share.any() for one in drawn)


def timeline_of(runs: Sequence[Run], task: int, advice: str) -> Timeline:
    """Return the timeline that all runs share.

    advice: what to do if they share none, for the error.
    """
    learned = runs[0].columns["task"]
    if any(not np.array_equal(learned, run.columns["task"]) for run in runs):
        lengths = dict.fromkeys(f"{run.config.method} {len(run.columns['task'])}" for run in runs)
        raise UserError(f"the runs differ in length ({', '.join(lengths)}): {advice}")
    return Timeline.of(learned, task)


def seed_words(counts: Mapping[str, int]) -> str:
    """Return `mean ± standard error over 5 seeds (joint 3)`.

    counts: the number of seeds by name.
    """
    most = max(counts.values())
    if most == 1:
        return "one seed"
    counts_text = [f"{name} {count}" for name, count in counts.items() if count < most]
    return f"mean ± standard error over {most} seeds" + (
        f" ({', '.join(counts_text)})" if counts_text else ""
    )


def _shared(runs: Sequence[Run], name: str) -> str:
    """Return the value of an option that all runs have, or nothing."""
    values = {str(getattr(run.config, name)) for run in runs}
    return values.pop() if len(values) == 1 else ""
