"""replication/optimisers.py: means per optimiser and differences paired by seed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.runs import curve_run, gap_accuracies, saved
from scipy import stats

from twofold import Store

SCRIPT = Path(__file__).parents[2] / "replication" / "optimisers.py"
SEEDS = (142, 152, 162, 172)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def runs(method: str, optimizer: str, shift: int) -> list[Any]:
        options = {"optimizer": optimizer, "eval_schedule": "dense:5:2"}
        return [
            curve_run(method, gap_accuracies(60, 3, seed + shift), seed=seed, **options)
            for seed in SEEDS
        ]

    return saved(
        tmp_path_factory.mktemp("optimisers") / "runs",
        runs("er", "sgd", 0),
        runs("er+gem", "sgd", 1),
        runs("er", "adam(lr=0.001)", 2),
        runs("er+gem", "adam(lr=0.001)", 3),
        runs("er+gem", "adam(lr=0.001,route=first)", 4),
    )


def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> list[list[str]]:
    """Return the cells of the table that the script prints."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
    runpy.run_path(str(SCRIPT))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def values(store: Path, method: str, optimizer: str, key: str) -> np.ndarray:
    runs = Store(store).runs().where(method=method)
    chosen = sorted(
        (run for run in runs if run.config.optimizer == optimizer), key=lambda run: run.config.seed
    )
    return np.array([run.measures[key] for run in chosen])


def test_means_have_a_column_per_optimiser(store, monkeypatch, capsys):
    head, _, *rows = printed(monkeypatch, capsys, "means", "--runs", str(store))
    assert head[2:] == ["SGD", "Adam", "Adam, route first"]
    table = {(measure, method): cells for measure, method, *cells in rows}
    low = values(store, "er", "adam", "min")
    assert table["MIN", "ER"][1] == f"≤ {low.mean():.1f} ± {stats.sem(low):.1f} (n=4)"
    assert table["MIN", "ER"][2] == "as Adam"
    average = values(store, "er+gem", "adam(route=first)", "avg")
    assert table["AVG", "ER + GEM"][2] == f"{average.mean():.1f} ± {stats.sem(average):.1f} (n=4)"


def test_differences_are_paired_and_corrected(store, monkeypatch, capsys):
    _, _, *rows = printed(monkeypatch, capsys, "pairs", "--runs", str(store))
    table = {tuple(cells[:3]): cells[3:] for cells in rows}
    paired = values(store, "er", "adam", "gap_depth") - values(store, "er", "sgd", "gap_depth")
    p = stats.ttest_1samp(paired, 0).pvalue
    comparisons = sum(key[0].endswith("− SGD") and key[2] == "gap depth" for key in table)
    assert comparisons == 3
    seeds, difference, _, corrected = table["Adam − SGD", "ER", "gap depth"]
    assert seeds == "4"
    assert float(difference.replace("−", "-")) == pytest.approx(paired.mean(), abs=0.051)
    assert corrected == f"{min(1.0, comparisons * p):.3f}"
    with_routine = table["ER + GEM − ER", "Adam, route first", "MIN"]  # ER has one route
    expected = values(store, "er+gem", "adam(route=first)", "min") - values(
        store, "er", "adam", "min"
    )
    assert float(with_routine[1].replace("−", "-")) == pytest.approx(expected.mean(), abs=0.051)


def test_without_runs_it_says_what_trains_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "means", "--runs", str(tmp_path / "none")])
    runpy.run_path(str(SCRIPT))
    assert "`twofold study run optimisers` trains them" in capsys.readouterr().out
