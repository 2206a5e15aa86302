"""The command `twofold runs show`: a run in full."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from helpers.benchmarks import class_benchmark
from helpers.commandline import Command

from twofold import Store, run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a run of each kind."""
    store = Store(tmp_path / "runs")
    for method in ("er", "er+ema(0.9)"):
        store.save(run(class_benchmark(), method, batch_size=10))
    return store.folder


def test_a_run_is_shown_with_its_measures(store: Path, twofold: Command) -> None:
    lines = twofold("runs", "show", "--runs", str(store), "--json").out.splitlines()
    result = {shown["method"]: shown for shown in map(json.loads, lines)}
    for one in Store(store).runs():
        shown = result[one.config.method]
        assert shown["measures"] == one.measures
        assert shown.get("raw_measures") == one.raw_measures
        assert shown["gaps"] == [dataclasses.asdict(gap) for gap in one.gaps]
        assert shown["avg"] == one.avg
    assert "raw_measures" not in result["er"]
    assert (
        result["er+ema(decay=0.9)"]["raw_measures"]["avg"] == result["er+ema(decay=0.9)"]["raw_avg"]
    )


def test_a_list_of_runs_is_short(store: Path, twofold: Command) -> None:
    lines = twofold("runs", "--runs", str(store), "--json").out.splitlines()
    assert len(lines) == 2
    assert not any("measures" in json.loads(line) for line in lines)


def test_it_is_shown_indented_without_json(store: Path, twofold: Command) -> None:
    out = twofold("runs", "show", "--runs", str(store), "--method", "er").out
    assert re.search(r'^  "measures": \{\n    "min": ', out, re.M)
    assert json.loads(out)["method"] == "er"
