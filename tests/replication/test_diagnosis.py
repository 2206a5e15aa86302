"""replication/diagnosis.py: sums over the first steps after a switch, means over seeds."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.runs import curve_run, gap_accuracies, saved
from scipy import stats

from twofold import Run

SCRIPT = Path(__file__).parents[2] / "replication" / "diagnosis.py"
SEEDS = (142, 152, 162)
COLUMNS = ("old_change", "old_predicted", "old_direct", "old_second")


def diagnosed(method: str, seed: int, scale: float) -> Run:
    run = curve_run(method, gap_accuracies(80, 2, seed), seed=seed, tasks=2, diagnose=True)
    random = np.random.default_rng(seed)
    for name in COLUMNS:
        values = scale * random.normal(0.1, 0.05, 80)
        values[run.columns["task"] == 1] = np.nan
        run.columns[name] = values.astype(np.float32)  # type: ignore[index]
    run.columns["old_direct"][-40:] -= 0.15  # type: ignore[index]
    return run


@pytest.fixture(scope="module")
def runs() -> dict[str, list[Run]]:
    return {
        method: [diagnosed(method, seed, scale) for seed in SEEDS]
        for method, scale in (("er", 1.0), ("er+hold", 0.01))
    }


@pytest.fixture(scope="module")
def store(runs, tmp_path_factory) -> Path:
    return saved(tmp_path_factory.mktemp("diagnosis") / "runs", *runs.values())


@pytest.mark.parametrize("steps", [15, 7])
def test_sums_of_the_first_steps_and_shares_of_their_means(runs, store, steps, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--runs", str(store), "--steps", str(steps)])
    runpy.run_path(str(SCRIPT))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = {cells[4]: dict(zip(head, cells, strict=True)) for cells in body}
    assert list(table) == ["er", "er+hold"]

    def sums(method: str, column: str) -> np.ndarray:
        return np.array([run.columns[column][40 : 40 + steps].sum() for run in runs[method]])

    def stated(values: np.ndarray) -> str:
        return f"{values.mean():.3f} ± {stats.sem(values):.3f}".replace("-", "−")

    for method in table:
        direct = sums(method, "old_direct")
        assert table[method]["seeds"] == "3"
        assert table[method]["change"] == stated(sums(method, "old_change"))
        assert table[method]["direction"] == stated(direct)
        assert table[method]["momentum"] == stated(sums(method, "old_predicted") - direct)
        assert table[method]["second order"] == stated(sums(method, "old_second"))
        uphill = [(run.columns["old_direct"][40 : 40 + steps] > 0).sum() for run in runs[method]]
        assert table[method]["uphill"] == f"{np.mean(uphill):.1f}"
    whole = sums("er", "old_change").mean()
    parts = [sums("er", name).mean() / whole for name in ("old_predicted", "old_second")]
    assert table["er"]["first : second"] == f"{parts[0]:.0%} : {parts[1]:.0%}"
    assert table["er+hold"]["first : second"] == "–"  # of next to nothing
    assert table["er"]["statistics"] == "–"
