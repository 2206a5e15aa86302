"""Verdicts: worked by hand, against an independent oracle, and by simulation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.commandline import Command, one_line
from helpers.runs import seeded

from twofold.compare.groups import groups
from twofold.compare.verdicts import findings
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.verdicts import render

PLAIN = [80.0, 80.0, 80.0]


def some() -> list[Run]:
    return seeded("er", PLAIN) + seeded("er+gem", [81, 82, 83]) + seeded("joint+gem", [90])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = Store(tmp_path / "store")
    store.prepare()
    for run in some():
        store.save(run)
    return store.folder


def test_the_command(twofold: Command, store: Path) -> None:
    done = twofold("verdicts", "--runs", store)
    found = groups(Store(store).runs())
    assert (done.code, done.out) == (0, render(findings(found)))
    file = store.parent / "verdicts.json"
    assert twofold("verdicts", "--runs", store, "--all-settings", "-o", file).code == 0
    assert len(json.loads(file.read_text())["verdicts"]) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--profile published", "a routine and plain SGD on one objective are needed"),
        ("--profile papr", "unknown profile 'papr': did you mean 'paper'?"),
        ("--format latex", "unknown format 'latex'"),
        ("--runs nowhere", "there is no folder nowhere: `twofold run` makes one"),
    ],
    ids=["nothing", "profile", "format", "empty"],
)
def test_mistakes_are_answered_in_one_line(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    done = twofold("verdicts", *words)
    assert done.code == 2
    assert message in one_line(done.err)
