"""Curves of stored runs: read when they are needed, and written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.benchmarks import domain_benchmark

import twofold
from twofold.errors import UserError
from twofold.experiments import runs
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
