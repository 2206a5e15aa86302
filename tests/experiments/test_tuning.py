"""`twofold study tune`: choices on held-out images and unreported seeds, in the study's file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commandline import Command, one_line

from twofold import Store, UserError
from twofold.experiments import studies
from twofold.experiments.tuned import Choice, write_choices
from twofold.experiments.tuning import Tuning, candidates, read_vary, unreported_seeds

PLUGIN = Path(__file__).parents[1] / "helpers" / "plugin.py"
MANY = ",".join(map(str, range(1, 301)))
STUDY = f"""
title = "Tuned"
seeds = [1, 2]
plugins = ["{PLUGIN}"]

[[grid]]
benchmark = "toy"
method = ["er", "er+gem"]
batch_size = 8
iterations = 4
eval_size = 9
"""
TUNE = ["--validation", "0.3", "--seed", "7,8", "--engine", "inline"]


@pytest.fixture
def tune(twofold: Command, written: Any, tmp_path: Path) -> Command:
    file = written(STUDY)
    return lambda *words: twofold("study", "tune", file, "--out", tmp_path / "out", *TUNE, *words)


def test_the_choice_is_the_highest_mean_of_held_out_accuracy(tune, tmp_path) -> None:
    outcome = tune("--vary", "lr=0.000001,0.1")
    assert outcome.code == 0, outcome.err
    runs = Store(tmp_path / "out").runs()
    assert len(runs) == 8
    assert {(run.config.seed, run.config.tasks, run.config.validation) for run in runs} == {
        (7, 2, 0.3), (8, 2, 0.3)
    }  # fmt: skip
    content = tomllib.loads((tmp_path / "mine.toml").read_text())
    for choice in content["tuned"]:
        means = {
            lr: np.mean(
                [r.avg for r in runs if (r.config.method, r.config.lr) == (choice["method"], lr)]
            )
            for lr in (0.000001, 0.1)
        }
        assert choice["use"]["lr"] == max(means, key=means.__getitem__)
        assert all(f"{mean:.1f}" in choice["why"] for mean in means.values())


def test_the_study_follows_the_choices_and_a_new_tuning_replaces_them(tune, tmp_path) -> None:
    tune("--vary", "gem.gamma=0.25,0.75")
    file = tmp_path / "mine.toml"
    first = file.read_text()
    assert first.startswith(STUDY.rstrip())
    methods = {config.method for config in studies.load(str(file)).configs()}
    assert methods in ({"er", "er+gem(gamma=0.25)"}, {"er", "er+gem(gamma=0.75)"})
    assert {c.method for c in studies.load(str(file), tuned=False).configs()} == {"er", "er+gem"}
    tune("--vary", "lr=0.01,0.1")
    assert {config.lr for config in studies.load(str(file)).configs()} <= {0.01, 0.1}
    assert "gamma" not in file.read_text()
    command = next(line for line in file.read_text().splitlines() if line.startswith("# Written"))
    assert "--vary lr=0.01,0.1 --metric avg --seed 7,8 --tasks 2 --validation 0.3" in command


def test_one_choice_for_all_methods_keeps_primary_comparisons(written: Any) -> None:
    file = Path(written(STUDY + '[primary]\nmethod = ["er+gem"]\n'))
    study = studies.load(str(file))
    places = candidates(study, Tuning({"lr": [0.1, 0.01]}, [7], together=True))
    assert list(places) == [("toy", "offline", None)]
    assert [len(each.configs) for each in places["toy", "offline", None]] == [2, 2]
    write_choices(file, [Choice("toy", "offline", {"lr": 0.5}, "a test")], "twofold study tune")
    tuned = studies.load(str(file))
    assert [(p.config.method, p.config.lr) for p in tuned.primary_points()] == [("er+gem", 0.5)]
    # A method with an option of its own is still the one that [primary] names.
    use = {"method": "er+gem(gamma=0.75)"}
    write_choices(file, [Choice("toy", "offline", use, "a test", "er+gem")], "twofold study tune")
    (point,) = studies.load(str(file)).primary_points()
    assert point.config.method == "er+gem(gamma=0.75)"
    # With different learning rates, the two are not compared.
    write_choices(file, [Choice("toy", "offline", {"lr": 1.0}, "a test", "er")], "...")
    with pytest.raises(UserError, match="no grid has on toy offline with the same options"):
        studies.load(str(file))


def test_unreported_seeds_are_none_of_the_studys(written: Any) -> None:
    study = studies.load(written(STUDY.replace("[1, 2]", "[7, 27]")))
    assert unreported_seeds(study, 3) == [17, 37, 47]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "nothing to tune: name values, such as --vary lr=0.01,0.1"),
        (["--vary", "lr"], "--vary takes a name and values, such as lr=0.01,0.1, not 'lr'"),
        (["--vary", "lr=0.1,"], "--vary takes a name and values"),
        (["--vary", "lr=fast,0.1"], "lr must be a finite number"),
        (["--vary", "larning=1,2"], "unknown option 'larning'"),
        (["--vary", "gme.gamma=1,2"], "unknown component of the study 'gme': did you mean 'gem'?"),
        (["--vary", "gem.gama=1,2"], "unknown option of gem 'gama': did you mean 'gamma'?"),
        (["--vary", "gem.gamma=1"], "nothing to tune: no method of the study has two values"),
        (["--vary", "lr=0.1,1", "--seed", "1"], "seed 1 is one of the study's"),
        (["--vary", "lr=0.1,1", "--metric", "agv"], "unknown metric 'agv'"),
        (["--vary", "lr=0.1,1", "--validation", "0"], "tuning holds out a share"),
        (["--vary", "gem.gamma=0,1", "--together"], "options of a component are chosen per method"),
        (["--vary", "lr=0.1,1", "--shard", "1/2"], "a choice needs all runs: leave --shard out"),
        (["--vary", "lr=0.1,1", "--within", "1h"], "a choice needs all runs: leave --within out"),
        (
            [*("--vary", f"lr={MANY}"), *("--vary", f"batch_size={MANY}")],
            "runs, and a tuning has at most 10,000: name fewer values",
        ),
    ],
)
def test_a_mistake_is_answered_in_one_line(words, why, twofold: Command, written: Any) -> None:
    assert why in one_line(twofold("study", "tune", written(STUDY), *words).err)


def test_a_file_that_cannot_be_written_is_told_in_one_line(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", fail)
    file = Path(written(STUDY))
    with pytest.raises(UserError, match=r"can't write to .*: Operation not permitted"):
        write_choices(file, [], "twofold study tune")


def test_a_papers_study_is_not_written_into(twofold: Command) -> None:
    line = one_line(twofold("study", "tune", "main", "--vary", "lr=0.1,1").err)
    assert "`twofold study show main > my.toml`" in line


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tuned = 3", "a choice begins with the line [[tuned]]"),
        ('[[tuned]]\nbenchmark = "toy"', "mode is missing"),
        ('[[tuned]]\nbenchmark="toy"\nmode="online"\nuse={lr=1}', "no grid has toy online"),
        ('[[tuned]]\nbenchmark="toy"\nmode="offline"\nuse={lrr=1}', "unknown key 'lrr'"),
        ('[[tuned]]\nbenchmark="toy"\nmode="offline"\nuse={lr=-1}', "lr must be above 0"),
    ],
)
def test_odd_choices_in_a_file(text: str, why: str, written: Any) -> None:
    first = text.startswith("tuned")
    file = written(f"{text}\n{STUDY}" if first else f"{STUDY}\n{text}\n")
    with pytest.raises(UserError) as caught:
        studies.load(file)
    assert why in str(caught.value)


def test_values_are_those_of_their_options() -> None:
    assert read_vary(["batch-size=10,64", "gem.gamma=0.1,1"]) == {
        "batch_size": [10, 64],
        "gem.gamma": ["0.1", "1"],
    }
