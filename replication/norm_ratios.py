"""Print how long the directions of routines are, relative to the objective's gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from twofold import Run, Store
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import value_text

RUNS = Path(__file__).resolve().parent / "runs"
FIRST = 50  # iterations of a task
CASES = [  # the store, the benchmark, its mode, and the method
    ("trajectories", "rotated-mnist", "offline", "er+hold"),
    ("trajectories", "rotated-mnist", "offline", "er+hold(gain=1.0)"),
    ("natural", "domain-cifar100", "offline", "er+hold"),
    ("natural", "domain-cifar100", "online", "er+hold"),
    ("natural", "split-cifar100", "online", "er+hold"),
    ("trajectories", "rotated-mnist", "offline", "er+pcgrad"),
]
HEAD = [
    *("method", "benchmark", "mode", "seeds", "task"),
    *(f"first {FIRST} iterations", "all iterations"),
]


def ratio(run: Run, task: int, iterations: int | None = None) -> float:
    """Return the mean of `norm_ratio` over the first iterations of a task that recorded it."""
    recorded = run.columns["norm_ratio"][run.columns["task"] == task]
    return float(np.nanmean(recorded[:iterations].astype(float)))


def rows(runs: list[Run]) -> list[list[str]]:
    """Return a row per task after the first, for the seeds of one method."""
    config = runs[0].config
    body = []
    for task in range(2, int(runs[0].columns["task"][-1]) + 1):
        stated = [
            value_text(*mean_and_error([ratio(run, task, count) for run in runs]), 2)
            for count in (FIRST, None)
        ]
        place = [config.method, title_of(config.benchmark), config.mode]
        body.append([*place, str(len(runs)), str(task), *stated])
    return body


def main() -> None:
    body = []
    for store, *wanted in CASES:
        found = [
            run
            for run in Store(RUNS / store).runs(curves=True)
            if [run.config.benchmark, run.config.mode, run.config.method] == wanted
        ]
        body += rows(found)
    print(markdown_table([HEAD, *body], left=3))
    note = "over the iterations that recorded it"
    print(f"\n- Mean ± standard error over seeds of `norm_ratio`, {note}.")


if __name__ == "__main__":
    main()
