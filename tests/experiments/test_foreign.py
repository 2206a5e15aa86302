"""Runs of a different loop: all commands show them like any other run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.watching import TESTS, network, train, watched

import twofold
from twofold.cli import main
from twofold.compare.groups import groups


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """Runs of four methods that are not twofold's, or only by name, with three seeds."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        for method in ("my idea (v2)", "replay", "replay+trick", "er+gem(0.5)"):
            settings = {"lr": 0.1, "width": 16, "augmented": True}
            watch = watched(out=folder, method=method, seed=seed, settings=settings, size=50)
            train(network(seed + len(method)), watch, steps=4)
            watch.finish()
    watch = watched(out=folder, method="replay", settings={"lr": 0.1, "width": 32}, size=50)
    train(network(), watch, steps=4)
    watch.finish()
    return folder


def test_it_groups_over_seeds_and_its_settings_are_columns_and_filters(store, capsys):
    runs = twofold.Store(store).runs()
    assert len(runs) == 13
    assert sorted(len(group.runs) for group in groups(runs)) == [1, 3, 3, 3, 3]
    assert len(runs.where(width=32)) == 1
    assert len(runs.where(lr=0.1, augmented=True)) == 12
    assert set(runs.frame()["width"]) == {16, 32}
    assert {"width", "augmented"} <= {*runs.measures.columns}
    assert len(runs.where(method="er+gem")) == 3  # one method, however it is written
    with pytest.raises(twofold.UserError, match="did you mean 'width'"):
        runs.where(widht=1)
    assert main(["runs", "--runs", str(store), "--set", "width=32"]) == 0
    out = capsys.readouterr().out
    assert "replay" in out
    assert "my idea" not in out
    assert main(["runs", "--runs", str(store), "--set", "width=64"]) == 2
    assert "unknown width '64'" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["md", "csv", "json", "latex", "html"])
def test_the_table_of_the_store_shows_it(store, capsys, format):
    words = ["table", "--runs", str(store), "--metrics", "min,gap_depth"]
    assert main([*words, "--format", format]) == 0
    out = capsys.readouterr().out
    for text in ("my idea (v2)", "replay+trick", "width", "32"):
        assert text in out


def test_any_of_its_methods_and_settings_can_be_compared(store, capsys):
    words = ["--runs", str(store), "--set", "width=16"]
    assert main(["compare", "replay", "my idea (v2)", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**my idea (v2) compared with replay** (mine, offline, lr 0.1, eval size")
    assert ", width 16, augmented true, 3 seeds)" in out
    assert main(["compare", "16", "32", "--by", "width", "--runs", str(store)]) == 2
    err = capsys.readouterr().err
    assert "width 16 and width 32 have no runs with equal settings (augmented true and none)" in err
    by_width = ["--by", "width", "--runs", str(store), "--may-differ", "augmented"]
    assert main(["compare", "16", "32", *by_width, "--method", "replay"]) == 2
    assert "have only one seed in common" in capsys.readouterr().err


def test_verdicts_compare_a_users_method_with_its_plain_one(store, capsys):
    assert main(["verdicts", "--runs", str(store)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| replay +\| trick +\| +3 ", out)
    assert "er+gem on mine offline (LR 0.1, BS –, profile paper) has no plain er" in out


def test_figures_and_the_page_show_it(store, tmp_path, capsys):
    words = ["figure", "compare", "mine", "--runs", str(store), "-o", str(tmp_path / "a.png")]
    assert main(words) == 2
    assert "replay's runs differ in width (16, 32): choose" in capsys.readouterr().err
    assert main([*words, "--set", "width=16"]) == 0
    assert "my idea (v2) (3)" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["report", str(store), "-o", str(page)]) == 0
    assert "my idea (v2)" in page.read_text()
    assert main(["departures", "--runs", str(store)]) in (0, 2)
    assert main(["runs", "show", "--runs", str(store), "--seed", "2"]) == 0
    assert main(["runs", "verify", "--runs", str(store)]) == 0
    assert main(["runs", "export", "--runs", str(store), "--to", str(tmp_path / "a")]) == 0
    archived = twofold.Store(tmp_path / "a").runs()
    assert {run.config.identity() for run in archived} == {
        run.summary["identity"] for run in twofold.Store(store).runs()
    }


def test_settings_decide_the_identity_and_runs_without_them_keep_theirs():
    one, same, other = (
        watched(settings=own).config.identity()
        for own in ({"a": 1, "b": "x"}, {"b": "x", "a": 1}, {"a": 2, "b": "x"})
    )
    assert one == same != other
    config = twofold.configure("rotated-mnist", "er")
    assert "settings" not in config.decisive()
    assert watched({"0": TESTS["80"]}).config.identity() != watched().config.identity()
