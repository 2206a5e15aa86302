"""Runs as a picture: the accuracy on one task while later ones are learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.drawing.curves import Timeline, mean_curve
from twofold.drawing.panels import ZOOM, Series, stacks_figure
from twofold.drawing.style import Style, looks
from twofold.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.experiments.runs import Run


def draw(named: Mapping[str, Sequence[Run]], task: int) -> Figure:
    """Draw runs by name. Lines are means over the runs of a name, and bands are standard errors.

    The top shows the first iterations after each task switch, the bottom the whole curves.
    """
    runs = [run for own in named.values() for run in own]
    if not runs:
        raise UserError("a figure needs at least one run")
    learned = runs[0].columns["task"]
    if any(not np.array_equal(learned, run.columns["task"]) for run in runs):
        lengths = dict.fromkeys(
            f"{name} {len(own[0].columns['task'])}" for name, own in named.items()
        )
        raise UserError(f"the runs differ in length ({', '.join(lengths)}): select some of them")
    styles = looks(named)
    series = [_series(name, own, styles[name], task) for name, own in named.items()]
    projected = any(one.share is not None and one.share.any() for one in series)
    timeline = Timeline.of(learned, task)
    return stacks_figure({"": series}, timeline, _notes(runs, named), share=projected)


def _series(name: str, runs: Sequence[Run], style: Style, task: int) -> Series:
    schedule = runs[0].config.schedule
    share = np.stack([run.columns["projected"] for run in runs]).astype(float).mean(axis=0)
    dense = ZOOM if schedule.complete else schedule.dense or ZOOM
    curve = mean_curve(np.stack([run.accuracy[:, task - 1] for run in runs]))
    return Series(curve, name, style, share, dense)


def _notes(runs: Sequence[Run], named: Mapping[str, Sequence[Run]]) -> list[str]:
    config = runs[0].config
    counts = sorted({len(own) for own in named.values()})
    seeds = "one seed" if counts == [1] else f"mean ± standard error over {counts[-1]} seeds"
    fewer = [f"{name} {len(own)}" for name, own in named.items() if len(own) < counts[-1]]
    apart = f" ({', '.join(fewer)})" if fewer else ""
    return [f"{config.benchmark}, {config.mode}: {seeds}{apart}"]
