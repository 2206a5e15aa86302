"""replication/cost.py: the ratios of every stored run of the benchmark, and the paper's."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_row_per_stored_run_of_the_benchmark(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(ROOT / "replication" / "cost.py"), run_name="__main__")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    _, _, *rows, paper = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert paper == ["the paper", "–", f"{61.52 / 59.24:.2f}"]  # its timing table
    stored = [json.loads(file.read_text()) for file in sorted(ROOT.glob("bench/results/*.json"))]
    assert len(rows) == len(stored) > 1
    for (processor, passes, ratio), result in zip(rows, stored, strict=True):
        assert processor.endswith(result["instructions"])
        (value, note) = next(
            (row["value"], row["note"])
            for row in result["rows"]
            if row["name"].startswith("training step of er+agem / er, Split CIFAR-100")
        )
        assert ratio == f"{value:.2f}"
        assert note == f"its passes alone: {passes}"
