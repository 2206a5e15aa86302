"""Curves of stored runs: read when they are needed, and written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.benchmarks import domain_benchmark

import twofold
from twofold.errors import UserError
from twofold.experiments import columns, runs
from twofold.experiments.columns import read_parquet
from twofold.experiments.runs import Run
from twofold.experiments.store import Store


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The folder of a real run."""
    store = Store(tmp_path / "store")
    store.prepare()
    return store.save(twofold.run(domain_benchmark(tasks=2), "er", batch_size=8, iterations=2))


def test_curves_are_read_when_they_are_asked_for(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def read(file: Path) -> Any:
        reads.append(file)
        return original(file)

    original = runs.read_parquet
    monkeypatch.setattr(runs, "read_parquet", read)
    run = Run.load(stored)
    assert run.avg > 0
    assert reads == []
    assert list(run.columns["task"]) == [1, 1, 2, 2]
    assert run.accuracy.shape == (4, 2)
    assert len(run.columns) == len(list(run.columns))
    assert reads == [stored / "curves.parquet"]


def test_a_run_that_was_read_can_be_written_again(stored: Path, tmp_path: Path) -> None:
    Run.load(stored).write(tmp_path)
    assert (tmp_path / "curves.parquet").read_bytes() == (stored / "curves.parquet").read_bytes()


def test_curves_that_can_not_be_read_are_answered_in_one_line(stored: Path) -> None:
    (stored / "curves.parquet").write_bytes(b"nothing of the kind")
    run = Run.load(stored)
    with pytest.raises(UserError, match=r"curves\.parquet can't be read"):
        run.accuracy  # noqa: B018


def test_the_size_of_curves_is_compared_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal numbers take no room in a file, so a small file can fill the memory."""
    file = tmp_path / "curves.parquet"
    pq.write_table(pa.table(dict.fromkeys("abc", np.zeros(10_000, np.int8))), file)
    assert len(read_parquet(file)["c"]) == 10_000
    monkeypatch.setattr(columns, "LARGEST", 100_000)
    assert file.stat().st_size < 100_000
    monkeypatch.setattr(pq.ParquetFile, "read", None)  # which would take the memory
    with pytest.raises(UserError, match="10,000 rows of 3 columns are too many"):
        read_parquet(file)
