"""The command `twofold table`."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commandline import Command, one_line
from helpers.measures import measured_run
from helpers.runs import saved, seeded

from twofold.compare.groups import groups
from twofold.experiments.store import Store
from twofold.report.tables import render, store_table, study_table


def test_only_some_of_the_metrics_on_the_command_line(twofold: Command, tmp_path: Path) -> None:
    store = saved(tmp_path / "store", [measured_run()])
    out = twofold("table", "main", "--runs", store, "--metrics", "avg").out
    assert "| AVG" in out
    assert "| MIN" not in out


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return saved(tmp_path / "store", seeded("er", [82, 84]), seeded("er+gem", [80, 90]))


def test_the_command_prints_the_table(twofold: Command, store: Path) -> None:
    result = twofold("table", "main", "--runs", store)
    assert result.code == 0
    assert result.out == render(study_table("main", groups(Store(store).runs())), "md")


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
    result = twofold("table", *words)
    assert result.code == 2
    assert message in one_line(result.err)
    assert result.out == ""


def test_without_a_name_all_runs_are_shown_at_full_width(twofold: Command, store: Path) -> None:
    result = twofold("table", "--runs", store, "--metrics", "avg,min", "--sort", "-min")
    assert result.code == 0
    found = groups(Store(store).runs())
    assert result.out == render(store_table(found, ["avg", "min"], ["-min"]), "md")
    assert result.out.index("| er ") < result.out.index("| er+gem ")  # the worst first
    words = ("--metrics", "min", "--format", "csv")
    out = twofold("table", "--runs", store, "--method", "er+gem", *words).out
    assert "er+gem" in out
    assert ",er," not in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--metrics forgeting", "unknown metric 'forgeting': did you mean 'forgetting'?"),
        ("--sort avgg", "unknown column 'avgg': did you mean 'avg'?"),
        ("main --sort avg", "--sort is for `twofold table` without a name"),
        ("--method joint", "unknown method 'joint' (there are er, er+gem)"),
        ("--profile publishd", "unknown profile 'publishd'"),
        ("main --profile paper,published", "a paper's table has one profile, not 2"),
        ("--runs nowhere", "there is no folder nowhere: `twofold run` makes one"),
    ],
)
def test_mistakes_with_the_table_of_a_store(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    result = twofold("table", *words)
    assert (result.code, result.out) == (2, "")
    assert message in one_line(result.err)
