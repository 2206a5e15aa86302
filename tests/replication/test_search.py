"""replication/search.py: the table of whole tasks has means over the stored seeds."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
from scipy import stats

SCRIPT = Path(__file__).parents[2] / "replication" / "search.py"
KEYS = ("min", "avg", "residual", "gap_depth", "new_speed")
METHOD = "er+hold(gain=1)"


def test_means_over_seeds(tmp_path, monkeypatch, capsys):
    script = Path(shutil.copy(SCRIPT, tmp_path))
    values = np.random.default_rng(0).uniform(50, 99, (3, len(KEYS)))
    rows = [
        {"method": METHOD, "iterations": 2000, "seed": seed, **dict(zip(KEYS, own, strict=True))}
        for seed, own in zip((7, 17, 27), values.tolist(), strict=True)
    ]
    lines = [json.dumps(row) for row in (*rows, {**rows[0], "method": "never listed"})]
    (tmp_path / "whole_tasks.jsonl").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(sys, "argv", [str(script), "--whole"])
    runpy.run_path(str(script))
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    _, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown]
    expected = [f"{own.mean():.1f} ± {stats.sem(own):.1f}" for own in values.T]
    assert body == [[METHOD, "2000", "3", *expected]]
