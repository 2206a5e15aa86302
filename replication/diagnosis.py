"""Print what the first steps after a switch change in the old loss, by first and second order."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from twofold import Run, Store
from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.compare.starts import one_start_per_seed
from twofold.drawing.curves import Array
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import EMPTY

HEAD = [
    *("benchmark", "mode", "LR", "β", "method", "seeds", "change", "direction", "momentum"),
    *("second order", "first : second", "statistics", "uphill", "projected"),
]
NOTES = (
    "β: the coefficient of momentum.",
    "change: the change of the loss on old training images by these steps, in total; mean ± "
    "standard error over seeds. It is nearly the sum of the next three columns.",
    "direction: the first-order change by the direction of each iteration, which is all that a "
    "constraint such as GEM's sees.",
    "momentum: the first-order change by the earlier directions, which momentum adds.",
    "second order: the sum of s'Hs / 2 over the steps s.",
    "first : second: their shares of the mean change, where there is one of at least 0.05.",
    "statistics: what batch norm's running statistics change in addition.",
    "uphill: the steps whose direction raises the old loss to first order.",
    "projected: the steps whose direction a routine changed; LPR and Hold always change it.",
)
LEAST = 0.05  # shares of a smaller change are noise


def first(run: Run, column: str, steps: int) -> Array:
    """Return a column of the first steps of the second task."""
    return run.columns[column][run.columns["task"] == 2][:steps].astype(float)


def total(run: Run, column: str, steps: int) -> float:
    return float(first(run, column, steps).sum())


def stated(values: list[float], digits: int = 3) -> str:
    mean, error = mean_and_error(values)
    text = f"{mean:z.{digits}f}" + (f" ± {error:.{digits}f}" if error is not None else "")
    return text.replace("-", "−")


def shares(change: float, *parts: float) -> str:
    if change < LEAST:
        return EMPTY
    return " : ".join(f"{part / change:.0%}" for part in parts).replace("-", "−")


def row(group: Group, steps: int) -> list[str]:
    def sums(value: Callable[[Run], float]) -> list[float]:
        return [value(run) for run in group.runs]

    def column(name: str) -> list[float]:
        return sums(lambda run: total(run, name, steps))

    change, second = column("old_change"), column("old_second")
    momentum = sums(
        lambda run: total(run, "old_predicted", steps) - total(run, "old_direct", steps)
    )
    uphill = sums(lambda run: float((first(run, "old_direct", steps) > 0).sum()))
    moved = all("old_statistics" in run.columns for run in group.runs)
    config = group.config
    return [
        *(title_of(config.benchmark), config.mode, f"{config.lr:g}", f"{config.momentum:g}"),
        *(config.method, str(len(group.runs))),
        *(stated(change), stated(column("old_direct")), stated(momentum), stated(second)),
        shares(np.mean(change), np.mean(column("old_predicted")), np.mean(second)),
        stated(column("old_statistics")) if moved else EMPTY,
        f"{np.mean(uphill):.1f}",
        f"{np.mean(column('projected')):.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("replication/runs/diagnosis"))
    parser.add_argument("--steps", type=int, default=15)
    args = parser.parse_args()
    places: dict[tuple[str, str, float, float], list[Run]] = {}
    for run in one_start_per_seed(Store(args.runs).runs(curves=True)):
        config = run.config
        place = (config.benchmark, config.mode, config.momentum, config.lr)
        places.setdefault(place, []).append(run)
    groups = [
        group for place in sorted(places, reverse=True) for group in method_groups(places[place])
    ]
    body = [row(group, args.steps) for group in groups]
    print(f"**The first {args.steps} steps after the switch to the second task**\n")
    print(markdown_table([HEAD, *body], left=5))
    print("", *(f"- {note}" for note in NOTES), sep="\n")


main()
