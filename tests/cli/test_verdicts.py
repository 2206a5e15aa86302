"""The command `twofold verdicts`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.commandline import Command, one_line
from helpers.runs import saved, seeded

from twofold.compare.groups import groups
from twofold.compare.verdicts import findings
from twofold.experiments.store import Store
from twofold.report.verdicts import render


@pytest.fixture
def store(tmp_path: Path) -> Path:
    runs = [seeded("er", [80, 80, 80]), seeded("er+gem", [81, 82, 83]), seeded("joint+gem", [90])]
    return saved(tmp_path / "store", *runs)


def test_the_command(twofold: Command, store: Path) -> None:
    result = twofold("verdicts", "--runs", store)
    all_groups = groups(Store(store).runs())
    assert (result.code, result.out) == (0, render(findings(all_groups)))
    file = store.parent / "verdicts.json"
    assert twofold("verdicts", "--runs", store, "--all-settings", "-o", file).code == 0
    assert len(json.loads(file.read_text())["verdicts"]) == 2


@pytest.mark.parametrize("name", ["H3", "hess2024/H3"])
def test_one_hypothesis(twofold: Command, store: Path, name: str) -> None:
    every = twofold("verdicts", "--runs", store, "--format", "json")
    one = twofold("verdicts", "--runs", store, "--format", "json", "--hypothesis", name)
    first, second = json.loads(every.out)["verdicts"]
    assert (first["hypothesis"], second["hypothesis"]) == ("H1", "H3")
    assert json.loads(one.out)["verdicts"] == [second]


def test_a_study_of_your_own(twofold: Command, store: Path) -> None:
    study = store.parent / "mine.toml"
    text = '[[grid]]\nbenchmark = "rotated-mnist"\nmethod = ["er", "er+gem"]\n[primary]\n'
    study.write_text(f'{text}method = "er+gem"\nmargin = {{min = 20}}\n')
    result = twofold("verdicts", "--runs", store, "--study", study)
    assert result.code == 0
    assert f"(MIN, profile paper), primary comparisons of the study {study}" in result.out
    assert "gem leaves er's MIN as it is, within 20 points" in result.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--profile published", "a routine and plain SGD on one objective are needed"),
        ("--profile papr", "unknown profile 'papr': did you mean 'paper'?"),
        ("--hypothesis H4", "unknown hypothesis 'H4'"),
        ("--study mian", "unknown study 'mian': did you mean 'main'?"),
        ("--study nowhere.toml", "can't read nowhere.toml: No such file or directory"),
        ("--format latex", "unknown format 'latex'"),
        ("--runs nowhere", "there is no folder nowhere: `twofold run` makes one"),
    ],
    ids=["nothing", "profile", "hypothesis", "study", "file", "format", "empty"],
)
def test_mistakes_are_answered_in_one_line(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    result = twofold("verdicts", *words)
    assert result.code == 2
    assert message in one_line(result.err)
