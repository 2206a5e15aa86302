"""What `--eval-schedule exact-min` saves: images and seconds of evaluation, relative to `every`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from measuring import Row, benchmark

from twofold import Benchmark, Method
from twofold.settings import Settings
from twofold.training import Training

ONLINE = {"mode": "online", "batch_size": 10, "lr": 0.01, "iterations": 10, "eval_size": 100}
OFFLINE = {"mode": "offline", "batch_size": 128, "lr": 0.1, "iterations": 80, "eval_size": 1000}
# The first three tasks, shortened: the share of images depends on how long they are. The bounds of
# the share and of the speed were set after measuring.
RUNS: dict[str, tuple[str, dict[str, Any], float, float]] = {
    "online Split CIFAR-100": ("split-cifar100", ONLINE, 0.6, 1.3),
    "online Domain CIFAR-100": ("domain-cifar100", ONLINE, 0.6, 1.3),
    "offline Rotated MNIST": ("rotated-mnist", OFFLINE, 0.9, 1.2),
}


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [row for title in RUNS for row in _rows(title)]


def _rows(title: str) -> list[Row]:
    name, options, most, least = RUNS[title]
    data = _with_tests(benchmark(name), options["eval_size"])
    every, exact = (_training(data, options, schedule) for schedule in ("every:1", "exact-min"))
    curves, lowest = every.run().curves, exact.run().curves
    for k in (1, 2):  # what is faster must be right
        minimum = np.nanmin(curves[f"accuracy_{k}"][curves["task"] > k])
        assert minimum == lowest[f"lowest_{k}"][-1], (title, k)
    share = exact.evaluator.checks.images / exact.evaluator.checks.whole
    ratio = every.seconds["evaluation"] / exact.seconds["evaluation"]
    note = f"three tasks of {options['iterations']} iterations"
    return [
        Row(f"exact-min: share of images per search, {title}", share, "at most", most, note=note),
        Row(f"evaluation with every / exact-min, {title}", ratio, "at least", least, note=note),
    ]


def _with_tests(data: Benchmark, count: int) -> Benchmark:
    """Return the benchmark with `count` test images per task: whole test sets take long."""
    tasks = (dataclasses.replace(task, test=task.test[:count]) for task in data.tasks)
    return dataclasses.replace(data, tasks=tuple(tasks))


def _training(data: Benchmark, options: dict[str, Any], schedule: str) -> Training:
    given = Settings(**options, seed=142, tasks=3, eval_schedule=schedule)
    return Training(data, *Method.parse("er").make(), given)
