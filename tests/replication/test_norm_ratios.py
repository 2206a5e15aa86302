"""replication/norm_ratios.py: means over the iterations that recorded a ratio, then over seeds."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
from helpers.runs import curve_run
from scipy import stats

from twofold import Run

SCRIPT = Path(__file__).parents[2] / "replication" / "norm_ratios.py"
EACH = 80  # iterations per task


def recorded(seed: int) -> Run:
    run = curve_run("er+hold", np.full((3, 3 * EACH), 90.0), seed)
    ratios = np.random.default_rng(seed).uniform(0.2, 0.9, 3 * EACH)
    ratios[np.arange(3 * EACH) % 10 > 3] = np.nan  # these iterations did not record it
    run.columns["norm_ratio"] = ratios.astype(np.float32)
    return run


def test_a_row_per_task_after_the_first():
    runs = [recorded(seed) for seed in (142, 152, 162)]
    rows = runpy.run_path(str(SCRIPT))["rows"](runs)

    def stated(first: int, last: int) -> str:
        means = [np.nanmean(run.columns["norm_ratio"][first:last].astype(float)) for run in runs]
        return f"{np.mean(means):.2f} ± {stats.sem(means):.2f}"

    assert rows == [
        [
            *("er+hold", "Rotated MNIST", "offline", "3", str(task)),
            *(stated(start, start + 50), stated(start, start + EACH)),
        ]
        for task, start in ((2, EACH), (3, 2 * EACH))
    ]
