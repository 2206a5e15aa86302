"""Study files: products of values, and mistakes that are told before anything runs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import STUDY, Command, one_line

from twofold.cli import study as study_command
from twofold.errors import UserError
from twofold.experiments import studies
from twofold.experiments.config import configure

# Files


def test_a_file_is_the_product_of_its_values(written: Any) -> None:
    study = studies.load(written(STUDY))
    result = [(c.method, c.lr, c.seed, c.iterations, c.batch_size) for c in study.configs()]
    assert result == [
        (method, lr, seed, 3, 128)
        for method in ("er", "er+gem")
        for lr in (0.1, 1.0)
        for seed in (1, 2)
    ]
    assert study.title == "Two methods"


def test_every_option_of_a_run_can_be_said(written: Any) -> None:
    text = """
    [[grid]]
    benchmark = "split-cifar100"
    method = "bic"
    mode = "online"
    profile = "published"
    tasks = 2
    eval_schedule = "every:4"
    eval_size = 5
    memory_per_class = 6
    memory_grouping = "class"
    whitening = "train"
    momentum = 0
    keep_weights = "end"
    device = "cpu"
    """
    (result,) = studies.load(written(text)).configs()
    assert result == configure(
        "split-cifar100", "bic", mode="online", profile="published", tasks=2,
        eval_schedule="every:4", eval_size=5, memory_per_class=6, memory_grouping="class",
        whitening="train", momentum=0, keep_weights="end", eval_precision="auto",
    )  # fmt: skip


@pytest.mark.parametrize(("line", "precision"), [("", "auto"), ('eval_precision = "fp32"', "fp32")])
def test_the_precision_chooses_itself_unless_a_study_sets_it(
    written: Any, line: str, precision: str
) -> None:
    configs = studies.load(written(STUDY + line)).configs()
    assert {config.eval_precision for config in configs} == {precision}


def test_the_document_names_every_key_and_option() -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    keys = re.search(r"Further keys of a grid [^:]*: (.*?)\.", text, re.DOTALL)
    assert keys
    named = {"benchmark", "method", "lr", *re.findall(r"`(\w+)`", keys[1])}
    assert named == {*studies._grid_options()}
    for option in (*study_command.AXES, *study_command.REPLACING):
        assert f"`{option.flag_text}" in text, option.name


def test_the_same_run_twice_is_one(written: Any) -> None:
    text = STUDY.replace('"er",', '"er", "er+sgd", "er+gem",') + STUDY.partition("[1, 2]")[2]
    assert len(studies.load(written(text)).configs()) == len(studies.load(written(STUDY)).configs())


def test_without_seeds_there_is_one(written: Any) -> None:
    study = studies.load(written(STUDY.replace("seeds = [1, 2]", "")))
    assert {config.seed for config in study.configs()} == {142}


def mistake(change: str, *named: str) -> Any:
    """A change to the good file (`this -> that`), or another file, and what the answer names."""
    return pytest.param(change, named, id=change.strip()[:60])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        mistake("", "no [[grid]]"),
        mistake("titel = 'x'", "'titel'", "did you mean 'title'"),
        mistake("title = \n", "not TOML", "line 1"),
        mistake("[[grid]]", "grid 1", "benchmark"),
        mistake("grid = 3", "[[grid]]"),
        mistake("grid = [3]", "[[grid]]"),
        mistake("[[grid]] -> [grid]", "[[grid]]"),
        mistake('title = "Two methods" -> title = 2', "title must be text, not 2"),
        mistake('title = "Two methods" -> about = []', "about must be text"),
        mistake("seeds = [1, 2] -> sede = 3", "'sede'", "did you mean 'seeds'"),
        mistake("seeds = [1, 2] -> seeds = 0", "seeds", "0"),
        mistake("seeds = [1, 2] -> seeds = []", "seeds", "[]"),
        mistake("seeds = [1, 2] -> seeds = true", "seeds must be a number or a list", "not True"),
        mistake("seeds = [1, 2] -> seeds = 1.5", "seeds must be a number or a list", "not 1.5"),
        mistake("seeds = [1, 2] -> seeds = ['a']", "seed must be a whole number, not 'a'"),
        mistake("seeds = [1, 2] -> seeds = [-1]", "seed must be at least 0, not -1"),
        mistake("seeds = [1, 2] -> seeds = [99999999999]", "seed must be at most"),
        mistake("seeds = [1, 2] -> plugins = 3", "plugins must be text, not 3"),
        mistake("seeds = [1, 2] -> plugins = ['no.py']", "there is no file", "no.py"),
        mistake("seeds = [1, 2] -> plugins = ['a\\u0000.py']", "there is no file"),
        mistake(f"seeds = [1, 2] -> seeds = {'9' * 5000}", "not TOML", "4300 digits"),
        mistake(f"seeds = [1, 2] -> seeds = {[*range(2501)]}", "10,004 runs", "at most 10,000"),
        mistake(f"a = {'[' * 100_000}", "nested too deeply"),
        mistake(f"a = {'{a = ' * 3000}1{'}' * 3000}", "nested too deeply"),
        mistake(
            f"iterations = 3 -> iterations = {[*range(1, 1001)]}\nbatch_size = {[*range(1, 1001)]}",
            "grid 1: these are 4,000,000 runs, and a study has at most 10,000: divide it",
        ),
        mistake("iterations = 3 -> iteration = 3", "grid 1", "did you mean 'iterations'"),
        mistake("iterations = 3 -> batchsize = 3", "grid 1", "did you mean 'batch_size'"),
        mistake("iterations = 3 -> seed = 3", "grid 1", "unknown key 'seed'"),
        mistake("iterations = 3 -> iterations = 3.0", "iterations must be a whole number, not 3"),
        mistake("iterations = 3 -> iterations = true", "iterations must be a whole number"),
        mistake("iterations = 3 -> iterations = []", "grid 1", "iterations is an empty list"),
        mistake("iterations = 3 -> iterations = [[3]]", "iterations must be a whole number"),
        mistake("iterations = 3 -> iterations = 0", "grid 1", "iterations must be at least 1"),
        mistake("iterations = 3 -> eval_every = 1", "grid 1", "unknown key 'eval_every'"),
        mistake("iterations = 3 -> own = 'x'", "grid 1", "unknown key 'own'"),
        mistake("iterations = 3 -> keep_weights = 'ends'", "grid 1", "did you mean 'end'"),
        mistake("iterations = 3 -> start_from = 'nowhere'", "can't read the weights nowhere"),
        mistake("iterations = 3 -> tasks = 4", "grid 1: rotated-mnist has 3 tasks, not 4"),
        mistake("iterations = 3 -> mode = 'offlin'", "grid 1", "did you mean 'offline'"),
        mistake("iterations = 3 -> mode = 2025-01-01", "grid 1: unknown value of mode"),
        mistake("iterations = 3 -> profile = 'papre'", "did you mean 'paper'"),
        mistake("iterations = 3 -> device = 'cup'", "no device 'cup'"),
        mistake("iterations = 3 -> memory_per_class = 0", "memory"),
        mistake("[0.1, 1] -> 'high'", "lr must be a finite number, not 'high'"),
        mistake("[0.1, 1] -> [0.1, -1]", "lr must be above 0"),
        mistake("[0.1, 1] -> nan", "lr must be a finite number"),
        mistake('"rotated-mnist" -> "rotated-mnits"', "grid 1", "did you mean 'rotated-mnist'"),
        mistake('benchmark = "rotated-mnist" -> #', "grid 1", "benchmark"),
        mistake('method = ["er", "er+gem(gamma=0.5)"] -> #', "grid 1", "method"),
        mistake('"er", -> "er+gme",', "grid 1", "did you mean 'gem'"),
        mistake('"er", -> 3,', "grid 1", "method must be text, not 3"),
        mistake('"er", -> "bic",', "grid 1", "class-incremental"),
    ],
)
def test_a_mistake_in_a_file_is_told_before_anything_runs(
    change: str, named: tuple[str, ...], written: Any, twofold: Command, tmp_path: Path
) -> None:
    old, arrow, new = change.partition(" -> ")
    assert not arrow or old in STUDY
    file = written(STUDY.replace(old, new) if arrow else change)
    result = twofold("study", "run", file, "--out", tmp_path / "out")
    assert (result.code, result.out) == (2, "")
    message = one_line(result.err)
    for word in (file, *named):
        assert word in message
    assert not (tmp_path / "out").exists()


def test_a_mistake_in_the_second_grid_is_found_there(written: Any) -> None:
    with pytest.raises(UserError, match="grid 2: method is missing"):
        studies.load(written(STUDY + "\n[[grid]]\nbenchmark = 'rotated-mnist'\n"))


@pytest.mark.parametrize(
    ("study", "named"),
    [
        ("mian", ("unknown study 'mian'", "did you mean 'main'")),
        ("nowhere.toml", ("can't read nowhere.toml", "No such file")),
        (".", ("unknown study '.'",)),
        ("", ("unknown study ''",)),
    ],
)
@pytest.mark.parametrize("action", ["run", "show"])
def test_a_study_that_is_not_there(
    action: str, study: str, named: tuple[str, ...], twofold: Command
) -> None:
    result = twofold("study", action, study)
    assert result.code == 2
    assert all(word in one_line(result.err) for word in named)


@pytest.mark.parametrize("kind", ["pipe", "device", "large file"])
def test_a_study_that_never_ends_is_refused_at_once(
    kind: str, tmp_path: Path, twofold: Command
) -> None:
    file = tmp_path / "mine.toml"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        with file.open("wb") as stream:
            stream.truncate(2**40)
    for action in ("run", "show"):
        result = twofold("study", action, file)
        assert result.code == 2
        assert re.search("it is not a plain file|too large for a study", one_line(result.err))


def test_a_study_is_shown_without_effects(tmp_path: Path, twofold: Command) -> None:
    (tmp_path / "mine.toml").write_text("title = 'Ä'\n# \x1b[31m\n")
    result = twofold("study", "show", tmp_path / "mine.toml")
    assert result.out == "title = 'Ä'\n# \\x1b[31m\n"


def test_a_file_that_is_not_text(tmp_path: Path, twofold: Command) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    assert "it is not text" in one_line(twofold("study", "run", tmp_path / "mine.toml").err)
