"""Print what the residual of methods is made of: improvement, noise at the end, and the fall."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from twofold import Run, Store
from twofold.compare.selection import method_groups
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import value_text

LATE = 1000  # iterations at the end of a run; the last switch is before them
HEAD = ["method", "seeds", "residual", "improvement", "at the end"]
NOTES = (
    "residual: accuracy of old tasks at the end minus MIN.",
    "improvement: what the residual would be if no accuracy ever fell below those at the switches "
    "and at the end.",
    f"at the end: accuracy of old tasks at the end minus their lowest in the last {LATE:,} "
    "iterations, long after the last switch. The residual is at least this.",
    "Mean ± standard error over seeds, in points.",
)


def above(run: Run, lowest: Callable[[int], float]) -> float:
    """Return the accuracy at the end minus a lowest one, as a mean over old tasks."""
    tasks = range(1, int(run.columns["task"][-1]))
    return float(np.mean([run.columns[f"accuracy_{i}"][-1] - lowest(i) for i in tasks]))


def improvement(run: Run) -> float:
    task = run.columns["task"]
    ends = np.flatnonzero(np.append(np.diff(task), 1))  # of tasks
    return above(run, lambda i: run.columns[f"accuracy_{i}"][ends[i - 1 :]].min())


def at_the_end(run: Run) -> float:
    return above(run, lambda i: np.nanmin(run.columns[f"accuracy_{i}"][-LATE:]))


def residual(run: Run) -> float:
    value = run.measures["residual"]
    assert value is not None
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("replication/runs/trajectories"))
    parser.add_argument("--seeds", type=int, default=5, help="methods with fewer are left out")
    args = parser.parse_args()
    runs = [
        run
        for run in Store(args.runs).runs(curves=True)
        if (run.config.benchmark, run.config.mode) == ("rotated-mnist", "offline")
    ]
    body = []
    for group in method_groups(runs):
        if len(group.runs) >= args.seeds:
            values = [
                [part(run) for run in group.runs] for part in (residual, improvement, at_the_end)
            ]
            stated = [value_text(*mean_and_error(each), 2) for each in values]
            body.append([group.config.method, str(len(group.runs)), *stated])
    print(markdown_table([HEAD, *body], left=1))
    print("", *(f"- {note}" for note in NOTES), sep="\n")


main()
