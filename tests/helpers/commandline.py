"""The command line as tests use it, in this process or in one of its own, on a toy dataset.

The toy is a Mini-ImageNet of six random images a class: the one dataset that is not held against
a published digest, so that any images of the right shape will do. A plugin makes a benchmark of
it that is learned in no time. The fixtures are in commandline_fixtures.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PER_CLASS = 6  # images, of which five are trained on: 25 a task
SHORT = ["--iterations", "2", "--tasks", "2", "--batch-size", "2", "--eval-size", "5"]

TINY = """
from torch import nn

from twofold.benchmarks.base import Images
from twofold.benchmarks.splitting import ClassSplit


class Tiny(ClassSplit, name="tiny"):
    title = "Tiny"
    about = "20 tasks of 5 classes at 7x7; linear"
    dataset = "mini-imagenet"
    tasks = 20
    offline_iterations = 6
    published_whitening = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

    @classmethod
    def model(cls):
        return nn.Sequential(nn.Flatten(), nn.Linear(147, 100))

    @classmethod
    def divide(cls, data, seed):
        *pools, tasks = super().divide(data, seed)
        small = [Images(pool.images[:, ::12, ::12].contiguous(), pool.labels) for pool in pools]
        return (*small, tasks)
"""

# A routine as a user may write one. What it logs is recorded as a column of the curves.
HALF = """
from dataclasses import dataclass

import torch
from twofold import Routine


@dataclass
class Half(Routine, name="half"):
    "Follows a part of the gradient."

    share: float = 0.5

    def direct(self, g, step):
        step.log["threads"] = float(torch.get_num_threads())
        return self.share * g
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """What `--json` printed: every line must be valid JSON, which NaN is not."""
        assert self.code == 0, self.err
        return [json.loads(line, parse_constant=_refuse) for line in self.out.splitlines()]


Command = Callable[..., Outcome]


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def tiny(toy: Path, out: Path, methods: str) -> list[object]:
    """The arguments of short runs on the toy: methods with `;` between them."""
    places = ("--plugin", toy / "tiny.py", "--data", toy, "--out", out)
    return ["run", "tiny", *methods.split(";"), *places, *SHORT]


def start(*args: object, **options: Any) -> subprocess.Popen[str]:
    """`twofold` in a process group of its own, so that a signal to it does not hit us."""
    return subprocess.Popen(
        [sys.executable, "-m", "twofold", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def process(*args: object, timeout: float = 600, **options: Any) -> Outcome:
    """`twofold` in a process of its own, to its end."""
    running = start(*args, **options)
    try:
        out, err = running.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        raise
    return Outcome(running.returncode, out, err)


def leftovers(out: Path) -> list[str]:
    """All files in an output folder that belong to no complete run, nor to one in the making."""
    files = [path.relative_to(out) for path in out.rglob("*") if not path.is_dir()]
    complete = {folder.name for folder in runs_in(out)}
    return sorted(
        str(file) for file in files if file.parts[0] not in {*complete, "store.json", ".work"}
    )


def runs_in(out: Path) -> list[Path]:
    """The folders of complete runs."""
    parts = ("config.json", "summary.json", "curves.parquet")
    folders = out.iterdir() if out.is_dir() else ()
    return sorted(f for f in folders if all((f / part).is_file() for part in parts))


def one_line(err: str) -> str:
    """The message of an error that a user can fix."""
    assert err.startswith("twofold: "), err
    assert err.endswith("\n"), err
    assert err.count("\n") == 1, err
    return err[len("twofold: ") : -1]


def wrong(outcome: Outcome, *named: str) -> str:
    """An error in one line that names these things."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    lines = outcome.err.splitlines(keepends=True)
    message = one_line("".join(line for line in lines if not line.startswith("decoding ")))
    for word in named:
        assert word in message
    return message


def nothing_in(out: Path) -> bool:
    """Neither a run nor a part of one."""
    return not runs_in(out) and not leftovers(out)


STUDY = """
title = "Two methods"
seeds = [1, 2]

[[grid]]
benchmark = "rotated-mnist"
method = ["er", "er+gem(gamma=0.5)"]
lr = [0.1, 1]
iterations = 3
"""
