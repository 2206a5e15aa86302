"""The command line as a new user meets it: what it prints, where, and what it leaves."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers.benchmarks import class_benchmark
from helpers.commandline import SHORT, Command, leftovers, process, runs_in

from twofold import Run, datasets
from twofold.cli.run import EXAMPLES
from twofold.experiments import config, studies
from twofold.experiments.config import Config, configure
from twofold.objectives import Objective
from twofold.settings import Settings
from twofold.training import Training


class Stop(Exception):  # noqa: N818
    """Raised where a command would begin to work."""


@pytest.fixture
def configs_of(twofold: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The configurations that a command makes, without the runs."""
    configs: list[Config] = []

    def recording(*args: Any, **options: Any) -> Config:
        configs.append(configure(*args, **options))
        return configs[-1]

    def stop(*_: object) -> None:
        raise Stop

    monkeypatch.setattr(config, "configure", recording)
    monkeypatch.setattr(datasets, "load", stop)

    def call(*args: object) -> list[Config]:
        configs.clear()
        with pytest.raises(Stop):
            twofold("run", *args, "--out", tmp_path / "out")
        return list(configs)

    return call


def curves(folder: Path | str) -> dict[str, bytes]:
    """The columns of a run as bytes: equal only if they are so bit by bit, NaNs included."""
    table = pq.ParquetFile(Path(folder) / "curves.parquet").read()
    return {name: table[name].to_numpy().tobytes() for name in table.column_names}


@pytest.mark.parametrize("example", [0, 1, 2, 3])
def test_the_examples_of_the_help_are_commands(example: int, configs_of: Any) -> None:
    line = EXAMPLES.splitlines()[1:][example]
    command = re.split(r" {3,}", line.strip())[0]
    assert configs_of(*shlex.split(command)[2:])


# What the options mean


@pytest.mark.parametrize(
    ("benchmark", "mode", "lr", "batch_size"),
    [
        ("rotated-mnist", "offline", 0.1, 128),
        ("domain-cifar100", "offline", 0.1, 128),
        ("split-cifar100", "offline", 0.1, 128),
        ("split-mini-imagenet", "offline", 0.1, 128),
        ("rotated-mnist", "online", 0.01, 10),
        ("domain-cifar100", "online", 0.01, 10),
        ("split-cifar100", "online", 0.01, 10),
        ("split-mini-imagenet", "online", 0.01, 64),
    ],
)
def test_the_main_tables_settings(
    benchmark: str, mode: str, lr: float, batch_size: int, configs_of: Any
) -> None:
    (config,) = configs_of(benchmark, "er", "--mode", mode)
    assert (config.mode, config.lr, config.batch_size) == (mode, lr, batch_size)
    assert (config.seed, config.profile, config.momentum) == (142, "paper", 0.9)
    assert (config.eval_schedule, config.eval_size) == ("every", 1000)
    assert config.memory_per_class == 100
    (config,) = configs_of(benchmark, "er", "--mode", mode, "--lr", "1e-3", "--batch-size", 7)
    assert (config.lr, config.batch_size) == (0.001, 7)


def test_the_second_tables_settings() -> None:
    """Without --lr, a method of the study is made as the study makes it."""
    for point in studies.load("sota").points:
        config = configure(point.config.benchmark, point.config.method)
        assert (config.lr, config.batch_size) == (point.config.lr, point.config.batch_size)


@pytest.mark.parametrize(
    ("options", "seeds"),
    [
        ([], [142]),
        (["--seed", "142,152"], [142, 152]),
        (["--seed", "7"], [7]),
        (["--seed", " 3, 2 ,3"], [3, 2]),
        (["--seed", "0"], [0]),
        (["--seeds", "1"], [142]),
        (["--seeds", "5"], [142, 152, 162, 172, 182]),
        (["--seeds", "7"], [142, 152, 162, 172, 182, 192, 202]),
    ],
)
def test_seeds(options: list[str], seeds: list[int], configs_of: Any) -> None:
    assert [config.seed for config in configs_of("rotated-mnist", "er", *options)] == seeds


def test_methods_times_seeds(configs_of: Any) -> None:
    configs = configs_of("rotated-mnist", "--seeds", 2, "er", "er+gem", "--mode", "online")
    assert [(c.method, c.seed) for c in configs] == [
        ("er", 142),
        ("er", 152),
        ("er+gem", 142),
        ("er+gem", 152),
    ]


@pytest.mark.parametrize(
    ("written", "method"),
    [
        ("er + gem( gamma = 0.1 )", "er+gem(gamma=0.1)"),
        (" er ", "er"),
        ("er+gem(0.1, always)", "er+gem(gamma=0.1,when=always)"),
        ("er+gem(gamma=1e-1)", "er+gem(gamma=0.1)"),
        ("gem", "gem"),
        ("finetune+gem", "gem"),
        ("sgd", "finetune"),
        ("joint(keep=none)", "joint"),
    ],
)
def test_spellings_of_a_method(written: str, method: str, configs_of: Any) -> None:
    assert [config.method for config in configs_of("rotated-mnist", written)] == [method]


@pytest.mark.parametrize(
    "options",
    [
        "rotated-mnist er",
        "rotated-mnist er+gem(gamma=0.1,when=always) --mode online --profile published --seed 3",
        "split-cifar100 bic+agem --mode online --lr 0.05 --batch-size 20 --momentum 0",
        "domain-cifar100 joint+momentum-reset --memory-grouping class --whitening published",
        "split-mini-imagenet der --iterations 3 --tasks 2 --eval-schedule every:5 --eval-size 9",
        "rotated-mnist gem(references=independent) --profile published --memory-per-class 7",
    ],
)
def test_the_recorded_command_makes_the_same_run(options: str, configs_of: Any) -> None:
    (config,) = configs_of(*options.split())
    program, run, *rest = shlex.split(config.command())
    assert (program, run) == ("twofold", "run")
    (second,) = configs_of(*rest)
    assert second == config
    assert second.folder_name() == config.folder_name()


def test_the_recorded_command_names_the_plugin(configs_of: Any, half: Path) -> None:
    (config,) = configs_of("rotated-mnist", "er+half(0.25)", "--plugin", half)
    assert configs_of(*shlex.split(config.command())[2:]) == [config]


@pytest.mark.parametrize(
    ("online", "cap", "batch_size", "iterations"),
    [
        (True, None, 7, 8),  # one pass over 60 examples; the last four are dropped
        (True, None, 10, 6),
        (True, None, 60, 1),
        (True, 3, 7, 3),
        (True, 100, 7, 8),
        (False, None, 7, 12),  # the benchmark's own
        (False, 3, 7, 3),
    ],
)
def test_iterations_of_a_task(
    online: bool, cap: int | None, batch_size: int, iterations: int
) -> None:
    settings = Settings(
        mode="online" if online else "offline",
        lr=0.1,
        batch_size=batch_size,
        seed=142,
        iterations=cap,
        tasks=2,
        eval_size=5,
    )
    result = Training(class_benchmark(), Objective.find("er").make({}), [], settings).run()
    assert np.bincount(result.curves["task"].astype(int)).tolist() == [0, iterations, iterations]


def test_iterations_is_a_cap_offline_too() -> None:
    """`at most N a task`, says the help: 100 is not a wish for more than the benchmark's 12."""
    settings = Settings(lr=0.1, batch_size=7, seed=142, iterations=100, tasks=2, eval_size=5)
    training = Training(class_benchmark(), Objective.find("er").make({}), [], settings)
    assert training.course.iterations(60) == 12


# What a run prints and leaves


def test_a_run_from_another_folder(toy: Path, tmp_path: Path, cache_folder: str) -> None:
    """The whole of it, in a process of its own: what goes to stdout, to stderr and to disk."""
    (tmp_path / "data").symlink_to(toy)
    out = "ünï cödé/runs"
    result = process(
        *(
            "run",
            "split-mini-imagenet",
            "er",
            "er + gem( gamma = 0.1 )",
            *SHORT,
            "--mode",
            "online",
        ),
        *("--data", "data", "--out", out, "--workers", 1, "--json"),
        cwd=tmp_path,
        env={**os.environ, "TWOFOLD_CACHE": cache_folder},
    )
    assert result.code == 0, result.err
    assert "Traceback" not in result.err
    assert "Warning" not in result.err
    first, second = result.objects
    assert first["benchmark"] == "split-mini-imagenet"
    assert first["mode"] == "online"
    assert (first["method"], second["method"]) == ("er", "er+gem(gamma=0.1)")
    assert (first["seed"], first["lr"], first["batch_size"]) == (142, 0.01, 2)
    assert (first["profile"], first["diverged"]) == ("paper", False)
    assert 0 <= first["min"] <= 100
    assert 0 <= first["avg"] <= 100
    assert first["iterations"] == 4
    assert first["examples"] == {"train": 25, "test": 5}  # not the published 2,500 and 500
    # The table and all else are on stderr, and the folder is named as it is.
    assert re.search(r"^ +er\+gem\(gamma=0\.1\) ", result.err, re.MULTILINE)
    assert f"The runs are in {out}/" in result.err
    folders = [Path(summary["folder"]) for summary in (first, second)]
    assert {str(folder.parent) for folder in folders} == {out}
    assert runs_in(tmp_path / out) == sorted(tmp_path / folder for folder in folders)
    assert leftovers(tmp_path / out) == []
    run = Run.load(tmp_path / folders[1])
    assert run.summary == {k: v for k, v in second.items() if k != "folder"}
    assert run.config.method == "er+gem(gamma=0.1)"
    assert run.accuracy.shape == (4, 2)


def test_the_same_command_makes_the_same_curves(run_tiny: Command, tmp_path: Path) -> None:
    options = ("er+gem;bic", "--json", "--out")
    first, second = (run_tiny(*options, tmp_path / name).objects for name in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert Path(one["folder"]).name == Path(other["folder"]).name
        assert curves(one["folder"]) == curves(other["folder"])
    differing = {"seconds", "folder"}
    for one, other in zip(first, second, strict=True):
        assert {k: v for k, v in one.items() if k not in differing} == {
            k: v for k, v in other.items() if k not in differing
        }
    assert curves(first[0]["folder"]) != curves(first[1]["folder"])


def test_the_same_command_again_leaves_one_run(run_tiny: Command, tmp_path: Path) -> None:
    (first,) = run_tiny("er", "--json").objects
    columns = curves(first["folder"])
    (second,) = run_tiny("er", "--json").objects
    assert second["folder"] == first["folder"]
    assert curves(second["folder"]) == columns
    assert runs_in(tmp_path / "out") == [Path(first["folder"])]
    assert leftovers(tmp_path / "out") == []


def test_a_method_named_twice_is_run_once(run_tiny: Command) -> None:
    """However it is spelt: its seeds would count twice in the mean and in the error."""
    result = run_tiny("er;er+sgd;er;er+gem;er+gem(gamma=0.5)", "--json")
    assert [summary["method"] for summary in result.objects] == ["er", "er+gem"]
    assert "±" not in result.err


def test_without_json_the_table_is_on_stdout(run_tiny: Command, tmp_path: Path) -> None:
    result = run_tiny("er", "--seeds", 3)
    assert result.code == 0
    number = r"\d+\.\d ± \d+\.\d"
    assert re.search(rf"^ +er +0\.1 +2 +{number} +{number} +0\.0% +3 *$", result.out, re.MULTILINE)
    assert f"The runs are in {tmp_path / 'out'}/" in result.out
    assert re.search(
        r"^er seed 162: MIN \d+\.\d  AVG \d+\.\d  \(3 of 3 done\)$", result.err, re.MULTILINE
    )


def test_one_task_has_no_min(run_tiny: Command) -> None:
    result = run_tiny("er", "--tasks", 1, "--json")
    (summary,) = result.objects
    assert summary["min"] is None
    assert summary["minimum_of_task"] == []
    assert "MIN -" in result.err
    assert re.search(r"^ +er +0\.1 +2 +- ", result.err, re.MULTILINE)


def test_json_stays_on_stdout_while_bars_are_shown(
    run_tiny: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is `twofold run ... --json > runs.jsonl`, in a terminal that draws bars."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take stderr for a terminal
    result = run_tiny("er", "--json")
    assert result.code == 0
    assert len(result.objects) == 1
    assert '"benchmark"' not in result.err


@pytest.mark.parametrize("name", ["a[b]", "a[red]", "[/b]", "100%", "{x}"])
def test_the_out_folder_may_have_any_name(name: str, run_tiny: Command, tmp_path: Path) -> None:
    result = run_tiny("er", "--out", tmp_path / name)
    assert result.code == 0
    assert f"The runs are in {tmp_path / name}/" in result.out
    assert len(runs_in(tmp_path / name)) == 1


# Plugins


def test_a_users_routine(run_tiny: Command, half: Path) -> None:
    (plain, own, whole) = run_tiny(
        "er;er+half;er+half(share=1)", "--plugin", half, "--json"
    ).objects
    assert (own["method"], whole["method"]) == ("er+half", "er+half(share=1.0)")
    assert hashlib.sha256(half.read_bytes()).hexdigest() in own["plugins"]
    columns = curves(whole["folder"])
    del columns["threads"]
    assert columns == curves(plain["folder"])
    assert curves(own["folder"])["loss"] != curves(plain["folder"])["loss"]


def test_a_plugins_options_are_recorded(half: Path) -> None:
    config = configure("rotated-mnist", "er+half(share=0.25)", plugins=[str(half)])
    assert config.components == [("er", {}), ("half", {"share": 0.25})]
    assert config.plugins == [str(half)]
