"""The script examples/memories.py, on a small Fashion-MNIST."""

from __future__ import annotations

import gzip
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "memories.py"


@pytest.fixture
def fashion(tmp_path: Path) -> Path:
    """Four files in the format of Fashion-MNIST, with 20 images of each class."""
    random = np.random.default_rng(0)
    labels = np.arange(200, dtype=np.uint8) % 10
    images = (25 * labels[:, None, None] + random.integers(0, 5, (200, 28, 28))).astype(np.uint8)
    for part in ("train", "t10k"):
        for name, header, values in (("images-idx3", 16, images), ("labels-idx1", 8, labels)):
            text = bytes(header) + values.tobytes()
            (tmp_path / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(text))
    return tmp_path


def test_the_script_fills_its_table(fashion, tmp_path, monkeypatch, capsys):
    words = ["--fashion", fashion, "--iterations", 2, "--out", tmp_path / "runs"]
    monkeypatch.setattr(sys, "argv", ["memories.py", *map(str, words)])
    script = runpy.run_path(str(SCRIPT), run_name="__main__")
    rows = capsys.readouterr().out.rpartition("| --- |\n")[2].strip().splitlines()
    assert len(rows) == len(script["RUNS"])
    for row, (method, memory) in zip(rows, script["RUNS"], strict=True):
        assert row.startswith(f"| `{method}` | {f'`{memory}`' if memory else ''} |")
    benchmark = script["fashion"](fashion)
    assert benchmark.scenario == "class"
    assert [task.classes for task in benchmark.tasks] == [(k, k + 1) for k in range(0, 10, 2)]
