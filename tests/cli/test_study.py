"""`twofold study`: narrowed, replaced, mistaken, listed, shown and run."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import Command, one_line, process, runs_in

from twofold import Store
from twofold.cli import study as study_command
from twofold.experiments import estimate, studies
from twofold.experiments.config import Config


@functools.cache
def runs_of(study: str) -> list[Config]:
    return studies.load(study).configs()


# Narrowed and replaced


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ("main", 240),
        ("main --benchmark rotated-mnist --mode offline", 30),
        ("main --benchmark rotated-mnist,split-cifar100 --mode offline", 60),
        ("main --benchmark rotated-mnist --benchmark split-cifar100 --mode offline", 60),
        ("main --method er", 40),
        ("main --method er --method joint+sgd", 80),
        ("main --batch-size 64", 30),
        ("main --batch-size 10,64 --lr 0.01", 120),
        ("main --lr 1e-1", 120),
        ("main --seeds 2", 96),
        ("main --seed 152,182 --seed 142", 144),
        ("main --mode online --method er --seed 152 --benchmark rotated-mnist", 1),
        ("gamma --method er+gem(0.1,always) --benchmark rotated-mnist", 5),
        ("projection-rule --method er+gem", 10),
        ("appendix --method gem --lr 0.001 --batch-size 128", 4 * 2 * 5),
        # Replacing: narrowed before, so that what is left out need not agree.
        ("main --iterations 3 --eval-schedule every:2 --eval-size 10 --memory-per-class 5", 240),
        ("main --benchmark split-mini-imagenet --tasks 11", 60),
        ("main --profile published", 240),
        ("timing --eval-schedule dense:10:500", 15),
        ("trajectories --eval-schedule every:10 --method er", 20),
    ],
)
def test_the_runs_of_a_command(
    args: str, count: int, twofold: Command, fixed_speed: None, tmp_path: Path
) -> None:
    result = twofold("study", "run", *args.split(), "--dry-run", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    runs = "1 run" if count == 1 else f"{count} runs"
    assert f"{args.split()[0]}: {runs}, 0 done, {count} to train\n" in result.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ("--benchmark rotated-mnits", "main: unknown benchmark 'rotated-mnits': did you mean"),
        ("--benchmark rotated-mnist,", "unknown benchmark ''"),
        ("--mode both", "(there are offline, online)"),
        ("--method der", "unknown method 'der'"),
        ("--method er+gme", "did you mean 'gem'"),
        ("--method er+gem(gamma=0.1)", "unknown method 'er+gem(gamma=0.1)': did you mean 'er+gem'"),
        ("--lr 0.5", "unknown lr '0.5'"),
        ("--lr high", "lr must be a finite number, not 'high'"),
        ("--batch-size 32", "(there are 10, 128, 64)"),
        ("--seed 7", "unknown seed '7'"),
        ("--seeds 6", "main has 5 seeds, not 6"),
        ("--seeds 0", "seeds must be from 1 to 10,000, not 0"),
        ("--mode offline --batch-size 10", "main: no run has all of mode offline, batch_size 10"),
        ("--tasks 4", "main: rotated-mnist has 3 tasks, not 4"),
        ("--iterations 0", "iterations must be at least 1"),
        ("--profile papre", "main: unknown profile 'papre': did you mean 'paper'"),
        ("--memory-per-class 0", "main: "),
        ("--plugin no.py", "there is no file no.py"),
        ("--benchmrak x", "did you mean '--benchmark'"),
        ("--seed 142 152 162 --json", "'152' is out of place: write --seed 142,152,162"),
        ("--lr 0.1 0.01", "'0.01' is out of place: write --lr 0.1,0.01"),
        ("--method er er+gem", "'er+gem' is out of place: write --method er --method er+gem"),
        ("--method er,er+gem", "--method takes one method: write --method er --method er+gem"),
        ("--method gem(1,always),er", "write --method 'gem(1,always)' --method er"),
    ],
)
def test_a_mistake_in_a_command(args: str, named: str, twofold: Command, tmp_path: Path) -> None:
    result = twofold("study", "run", "main", *args.split(), "--out", tmp_path / "out")
    assert (result.code, result.out) == (2, "")
    assert named in one_line(result.err)
    assert not (tmp_path / "out").exists()


def test_what_is_replaced_holds_for_all_runs() -> None:
    study = studies.load("sota").replacing({"iterations": 3, "profile": "published", "tasks": 2})
    assert {(c.iterations, c.tasks, c.profile) for c in study.configs()} == {(3, 2, "published")}
    assert {c.components[0][1]["augment"] for c in study.configs()} == {"pad"}


def test_a_schedule_replaces_that_of_the_study() -> None:
    timing = studies.load("timing").replacing({"eval_schedule": "dense:10:500"})
    assert {c.eval_schedule for c in timing.configs()} == {"dense:10:500"}
    rest = studies.load("timing").replacing({"eval_size": 5})
    assert {c.eval_schedule for c in rest.configs()} == {"every:1000000"}


@pytest.mark.parametrize("example", study_command.EXAMPLES.splitlines()[1:-1])
def test_the_examples_of_the_help_are_commands(
    example: str, twofold: Command, fixed_speed: None, tmp_path: Path
) -> None:
    words = shlex.split(re.split(r" {3,}", example.strip())[0])
    assert twofold(*words[1:], "--dry-run", "--out", tmp_path).code == 0


def test_the_list_names_all_with_their_runs(twofold: Command) -> None:
    result = twofold("study", "list")
    assert result.code == 0
    assert [line.split()[:3] for line in result.out.splitlines()] == [
        [name, str(len(runs_of(name))), "runs"] for name in studies.names()
    ]


def test_what_is_shown_is_a_study(twofold: Command, written: Any) -> None:
    copy = studies.load(written(twofold("study", "show", "main").out))
    assert copy.configs() == runs_of("main")


# Run


TINY_STUDY = """
seeds = 2
plugins = ["tiny.py"]

[[grid]]
benchmark = "tiny"
method = ["er", "er+agem"]
iterations = 2
tasks = 2
batch_size = 2
eval_size = 5
"""


def test_a_study_is_made_by_workers_and_then_there(
    toy: Path, tmp_path: Path, twofold: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin lies beside the file."""
    monkeypatch.setattr(estimate, "start_seconds", lambda: 0.0)
    (tmp_path / "tiny.py").write_text((toy / "tiny.py").read_text())
    (tmp_path / "mine.toml").write_text(TINY_STUDY)
    words = ("study", "run", tmp_path / "mine.toml", "--data", toy, "--out", tmp_path / "out")
    first = twofold(*words, "--method", "er", "--workers", 1)
    assert first.code == 0, first.err
    assert len(runs_in(tmp_path / "out")) == 2
    output = twofold(*words, "--dry-run").out
    assert re.search(r"^tiny +offline +er +2 runs, +2 done$", output, re.MULTILINE), output
    assert re.search(r"^tiny +offline +er\+agem +2 runs, +0 done, 1 s on", output, re.MULTILINE), (
        output
    )
    assert "mine.toml: 4 runs, 2 done, 2 to train\nAbout 1 s on the CPU" in output
    before = {run: (run / "summary.json").read_bytes() for run in runs_in(tmp_path / "out")}
    second = twofold(*words, "--workers", 1)
    assert second.code == 0, second.err
    assert len(runs_in(tmp_path / "out")) == 4
    assert second.err.count("was there already") == 2
    assert before == {run: (run / "summary.json").read_bytes() for run in before}
    assert re.search(r"^ +er\+agem .* 2 *$", second.out, re.MULTILINE)  # the table
    output = twofold(*words, "--dry-run").out
    assert output.endswith("mine.toml: 4 runs, 4 done, 0 to train\n")


@pytest.mark.real_data
def test_a_part_of_the_main_table_tried_small(need: Any, tmp_path: Path) -> None:
    """The command runs in a process of its own, as a user starts it."""
    data = need("mnist")
    words = ("study", "run", "main", "--benchmark", "rotated-mnist", "--mode", "offline")
    words += ("--method", "er", "--seeds", 2, "--workers", 1, "--out", tmp_path / "out")
    words += ("--iterations", 2, "--tasks", 2, "--eval-size", 20)
    words += ("--data", data) if data else ()
    result = process(*words, timeout=600)
    assert result.code == 0, result.err
    frame = Store(tmp_path / "out").frame()
    assert len(frame) == 2 * 2 * 2  # seeds, tasks, iterations
    assert set(frame["seed"]) == {142, 152}
    second = process(*words, "--json", timeout=600)
    assert len(second.objects) == second.err.count("was there already") == 2
