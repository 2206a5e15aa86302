"""Runs made by hand, and what of them was drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from helpers.runs import curve_run
from twofold import Run, Store

BLACK, ORANGE, BLUE = "#000000", "#d55e00", "#0072b2"
nan = np.nan


def two_tasks(method: str, first: list, seed=142, metrics: tuple | None = None, **more) -> Run:
    """A run of two tasks, of which the first has these accuracies; metrics: its MIN and AVG."""
    half = len(first) // 2
    run = curve_run(method, [first, [nan] * half + [50.0] * half], seed=seed, **more)
    if metrics is not None:
        run.summary["min"], run.summary["avg"] = metrics
    return run


def stored(runs: list[Run], folder: Path) -> list[Run]:
    for run in runs:
        Store(folder).save(run)
    return list(Store(folder).runs())


def panels(figure: Figure, kind: str, column: int = 0) -> list[Axes]:
    return [axes for axes in figure.subfigs[column].axes if axes.get_label() == kind]


def curves(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Solid lines by colour."""
    solid = [line for line in axes.lines if line.get_linestyle() == "-"]
    return {
        to_hex(line.get_color()): (list(line.get_xdata()), list(line.get_ydata())) for line in solid
    }


def edges(axes: Axes) -> tuple[list[float], list[float]]:
    """The lower and upper edge of the only band, which has no other points."""
    (band,) = axes.collections
    points = band.get_paths()[0].vertices
    at = {x: [y for other, y in points if other == x] for x in sorted(set(points[:, 0]))}
    return [min(ys) for ys in at.values()], [max(ys) for ys in at.values()]


def dashed(axes: Axes) -> list[float]:
    return [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]


def shares(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Bin edges and values by colour."""
    return {
        to_hex(stairs.get_edgecolor()): (
            list(stairs.get_data().edges),
            pytest.approx(list(stairs.get_data().values)),
        )
        for stairs in axes.patches
    }


def legend(figure: Figure) -> dict[str, tuple[str, str]]:
    """Colours and lines by name, as the only legend has them."""
    (legend,) = figure.legends
    entries = zip(legend.get_texts(), legend.get_lines(), strict=True)
    return {t.get_text(): (to_hex(line.get_color()), line.get_linestyle()) for t, line in entries}


def colours(figure: Figure) -> dict[str, str]:
    return {name: colour for name, (colour, _) in legend(figure).items()}


def note(figure: Figure) -> str:
    """What stands below, on one line."""
    return " ".join(figure.get_supxlabel().split())


LENGTH = 6  # of a task
CHANGES = {"old_change": 0.5, "old_predicted": 0.2, "old_direct": -0.1, "old_second": 0.3}


def diagnosed(method: str, seed: int = 142, factor: float = 1.0, **more: float) -> Run:
    """A run whose old loss changes equally at every step."""
    run = two_tasks(method, [90.0] * 2 * LENGTH, seed, diagnose=True, eval_schedule="every:3")
    first = np.full(LENGTH, np.nan)
    steps = np.arange(1.0, LENGTH + 1)
    for name, value in {**CHANGES, **more}.items():
        column = np.concatenate([first, np.full(LENGTH, factor * value)])
        run.columns[name] = column.astype(np.float32)  # type: ignore[index]
    cosine = np.concatenate([first, steps / 10]).astype(np.float32)
    run.columns["old_cosine"] = cosine  # type: ignore[index]
    return run
