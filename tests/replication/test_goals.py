"""replication/goals.py: the nearest method of each goal, on curves whose measures are known."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.runs import curve_run, saved

from twofold import Run

SCRIPT = Path(__file__).parents[2] / "replication" / "goals.py"
EACH = 20  # iterations per task
STEP = "training step of er+hold / er, Rotated MNIST, batch 128, task 3"


def curves(low: float, end: float, speed: int) -> np.ndarray:
    """Old tasks fall to `low` at a switch and return; a new task is learned at once, by `speed`."""
    table = np.full((3, 3 * EACH), np.nan)
    for k, accuracies in enumerate(table):
        start = k * EACH
        accuracies[start:] = end
        accuracies[start : start + speed - 1] = 10
        accuracies[start + EACH :: EACH] = low
    return table


def three(method: str, low: float, end: float, speed: int, **options: Any) -> list[Run]:
    """Three seeds: deviations -0.25, -0.25, 0.5; variance 0.375 / 2; error sqrt(0.1875 / 3)."""
    return [
        curve_run(method, curves(low + shift, end + shift, speed), seed, **options)
        for shift, seed in ((-0.25, 142), (-0.25, 152), (0.5, 162))
    ]


def averaged(method: str, low: float, end: float) -> list[Run]:
    runs = three(method, low, end, 18)
    for run in runs:
        run.summary["raw_accuracy_after_task"] = run.summary["accuracy_after_task"]
        for k in (1, 2, 3):
            run.columns[f"raw_accuracy_{k}"] = run.columns[f"accuracy_{k}"]
    return runs


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    def rows(*runs: list[Run]) -> list[list[str]]:
        store = saved(tmp_path / "runs", *runs)
        results = tmp_path / "results"
        results.mkdir()
        for name, value in (("a", 1.25), ("b", 1.375)):
            step = {"name": STEP, "value": value, "bound": "at most", "target": 1.5}
            found = {"rows": [{"name": "another"}, {**step, "reached": True}]}
            (results / f"{name}.json").write_text(json.dumps(found))
        words = ["--runs", str(store), "--results", str(results), "--seeds", "3"]
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        _, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return body

    return rows


def test_the_nearest_method_of_each_goal(printed):
    fast, best, joint, average, cost = printed(
        three("er", 80, 94, 10),
        three("er+hold", 95, 95.5, 12),
        three("er+hold(gain=1)", 95.25, 95.5, 14),  # nearer to Best, and too late for Fast
        three("er+lpr", 90, 95.5, 12),
        three("er+gem", 99, 99, 10, eval_schedule="dense:10:5"),  # a bound on MIN
        three("er+sam", 99, 99, 10)[:1],  # one seed
        three("joint+hold", 97, 98, 10),
        averaged("er+ema", 95.5, 96),
        averaged("joint+ema", 99, 99),
    )
    assert fast == [
        "Fast",
        "er+hold",
        "residual 0.50 ± 0.00 (at most 0.5); AVG 95.50 ± 0.25 (at least ER's 94.00); "
        "new task at 90% 1.20 ± 0.00 (at most 1.2)",
        "reached",
    ]
    assert best == [
        "Best",
        "er+hold(gain=1.0)",
        "MIN 95.25 ± 0.25 (at least 94.5); AVG 95.50 ± 0.25 (at least 95.5); "
        "residual 0.25 ± 0.00 (at most 0.2); new task at 90% 1.40 ± 0.00 (at most 2)",
        "missed: residual",
    ]
    assert joint[1::2] == ["joint+hold", "missed: residual"]
    assert average == [
        "With an average",
        "er+ema",
        "MIN 95.50 ± 0.25 (at least 95.5); AVG 96.00 ± 0.25 (at least 96)",
        "reached",
    ]
    assert cost == ["Cost", "er+hold", "training step 1.25 to 1.38 (at most 1.5)", "reached"]


def test_a_goal_without_runs_has_no_result(printed):
    _, _, joint, average, _ = printed(three("er", 80, 94, 10))
    assert joint == ["Joint", "–", "–", "–"]
    assert average == ["With an average", "–", "–", "–"]
