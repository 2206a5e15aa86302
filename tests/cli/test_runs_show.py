"""The table `trajectories`, and `runs show`: measures where they are shown."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from helpers.benchmarks import class_benchmark
from helpers.commandline import Command

from twofold import Run, Store, run
from twofold.compare.groups import groups
from twofold.report.tables import StudyTable, render, study_table


def table(*runs: Run) -> StudyTable:
    return study_table("trajectories", groups(runs))


def shown(*runs: Run) -> dict[str, dict[str, str]]:
    """The only block as Markdown has it, by method and column."""
    lines = [line for line in render(table(*runs), "md").splitlines() if line.startswith("|")]
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(heads, row, strict=True)) for row in rows}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """With a run of each kind."""
    store = Store(tmp_path / "runs")
    for method in ("er", "er+ema(0.9)"):
        store.save(run(class_benchmark(), method, batch_size=10))
    return store.folder


def test_a_run_is_shown_with_its_measures(store: Path, twofold: Command) -> None:
    lines = twofold("runs", "show", "--runs", str(store), "--json").out.splitlines()
    found = {shown["method"]: shown for shown in map(json.loads, lines)}
    for one in Store(store).runs():
        shown = found[one.config.method]
        assert shown["measures"] == one.measures
        assert shown.get("raw_measures") == one.raw_measures
        assert shown["gaps"] == [dataclasses.asdict(gap) for gap in one.gaps]
        assert shown["avg"] == one.avg
    assert "raw_measures" not in found["er"]
    assert (
        found["er+ema(decay=0.9)"]["raw_measures"]["avg"] == found["er+ema(decay=0.9)"]["raw_avg"]
    )


def test_a_list_of_runs_is_short(store: Path, twofold: Command) -> None:
    lines = twofold("runs", "--runs", str(store), "--json").out.splitlines()
    assert len(lines) == 2
    assert not any("measures" in json.loads(line) for line in lines)


def test_it_is_shown_indented_without_json(store: Path, twofold: Command) -> None:
    out = twofold("runs", "show", "--runs", str(store), "--method", "er").out
    assert re.search(r'^  "measures": \{\n    "min": ', out, re.M)
    assert json.loads(out)["method"] == "er"
