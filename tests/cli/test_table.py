"""The table `trajectories`, and `runs show`: measures where they are shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark
from helpers.commandline import Command, one_line
from helpers.runs import scored_run, seeded
from test_measures import FINAL, HAND, hand

from twofold import Run, Store, run
from twofold.compare.groups import groups
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.tables import render, study_table


def trained(
    method: str = "er", *, lower: float = 0.0, raw: float | None = None, **more: Any
) -> Run:
    """A run with the curves that are worked by hand; each accuracy lower by so much.

    raw: has the curves of the trained weights, too, lower by that.
    """
    task, accuracy = hand(HAND)
    columns = {"task": np.array(task, np.int16)}
    added: dict[str, Any] = {}
    for kind, drop in (("accuracy", lower), ("raw_accuracy", raw)):
        if drop is not None:
            columns |= {f"{kind}_{k + 1}": accuracy[:, k] - drop for k in range(3)}
            added[f"{kind}_after_task"] = [[a - drop for a in after] for after in FINAL]
    one = scored_run(method, **more)
    return dataclasses.replace(one, curves=columns, summary={**one.summary, **added})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """With a run of each kind."""
    store = Store(tmp_path / "runs")
    for method in ("er", "er+ema(0.9)"):
        store.save(run(class_benchmark(), method, batch_size=10))
    return store.folder


def test_only_some_of_the_metrics_on_the_command_line(twofold: Command, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.prepare()
    store.save(trained())
    out = twofold("table", "main", "--runs", store.folder, "--metrics", "avg").out
    assert "| AVG" in out
    assert "| MIN" not in out


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    store = Store(folder)
    store.prepare()
    for run in (*seeded("er", [82, 84]), *seeded("er+gem", [80, 90])):
        store.save(run)
    return folder


def test_the_command_prints_the_table(twofold: Command, store: Path) -> None:
    done = twofold("table", "main", "--runs", store)
    assert done.code == 0
    assert done.out == render(study_table("main", groups(Store(store).runs())), "md")


def test_the_command_writes_what_the_name_says(twofold: Command, store: Path) -> None:
    for name, start in (("a.tex", "%"), ("deep/a.csv", "table,"), ("a.json", "{"), ("a.html", "<")):
        file = store.parent / name
        assert twofold("table", "main", "--runs", store, "-o", file).code == 0
        assert file.read_text().startswith(start)
    file = store.parent / "named.txt"
    assert twofold("table", "main", "--runs", store, "-o", file, "--format", "md").code == 0
    assert file.read_text().startswith("**ER and full replay")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("apendix", "unknown table 'apendix': did you mean 'appendix'?"),
        ("main --profile publish", "unknown profile 'publish': did you mean 'published'?"),
        ("main --format latx", "did you mean 'latex'?"),
        ("sota", "belongs to this table: `twofold study run sota` trains them"),
        ("main --profile published", "`twofold study run main --profile published` trains them"),
        ("main --runs nowhere", "there is no folder nowhere: `twofold study run main` makes one"),
        ("main -o table.txt", "what format is table.txt? Set --format md|latex|csv|json|html"),
    ],
    ids=["table", "profile", "format", "others", "other-profile", "empty", "suffix"],
)
def test_mistakes_are_answered_in_one_line(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    done = twofold("table", *words)
    assert done.code == 2
    assert message in one_line(done.err)
    assert done.out == ""
