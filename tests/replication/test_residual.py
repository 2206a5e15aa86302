"""replication/residual.py: the parts of a residual, counted by hand on a curve of three tasks."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
from helpers.runs import curve_run, saved

SCRIPT = Path(__file__).parents[2] / "replication" / "residual.py"
EACH = 1100  # iterations per task


def curves(dip: float) -> np.ndarray:
    table = np.full((3, 3 * EACH), np.nan)
    first, second, third = table
    first[:EACH] = 97
    first[EACH - 1] = 93  # it improves from here on
    first[EACH:] = 95
    first[EACH] = 90  # the fall after the first switch
    first[-500] = 94  # noise, long after the last switch
    first[-1] = 98
    second[EACH:] = 96
    second[2 * EACH] = 91  # more than 1,000 iterations before the end
    second[-50] = dip
    second[-1] = 95
    third[2 * EACH :] = 97
    return table


def test_the_parts_of_a_residual(tmp_path, monkeypatch, capsys):
    dips = {142: 94, 152: 94, 162: 91}
    runs = [curve_run("er", curves(dip), seed) for seed, dip in dips.items()]
    few = [curve_run("er+hold", curves(94), 142)]
    store = saved(tmp_path / "runs", runs, few)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--runs", str(store), "--seeds", "3"])
    runpy.run_path(str(SCRIPT))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    _, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    # At the end: (98 - 94 + 95 - 94) / 2 twice and (98 - 94 + 95 - 91) / 2, which is 2.5, 2.5, 4:
    # deviations -0.5, -0.5, 1; variance 1.5 / 2; error sqrt(0.75 / 3).
    assert body == [["er", "3", "6.00 ± 0.00", "2.50 ± 0.00", "3.00 ± 0.50"]]
