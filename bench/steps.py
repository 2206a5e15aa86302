"""What a routine costs: the time of a training step relative to plain ER's."""

from __future__ import annotations

import dataclasses
import statistics
import time
from functools import partial

import torch
from measuring import Row, Stepper, benchmark, in_turns, like
from torch import Tensor

from twofold import Needs, Routine, Step

MNIST, CIFAR = "Rotated MNIST, batch 128", "Split CIFAR-100, batch 10"

_in_turns = partial(in_turns, clock=time.process_time)


class Apart(Routine, name="apart"):
    """Asks for g_old, as A-GEM does, and follows g: what the passes cost alone."""

    def asks(self) -> Needs:
        return Needs.OLD

    def direct(self, g: Tensor, step: Step) -> Tensor:
        return g


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [*_on_mnist(), *_layerwise(), *_on_cifar(), _over_ten_tasks(), _late()]


def _on_mnist() -> list[Row]:
    """In the third task."""
    targets = {
        "agem": 1.15,
        "gem": 2.2,
        "ema": 1.03,
        "clip": 1.03,
        "warmup": 1.03,
        "sam": 2.2,
    }
    methods = ["er", "er+apart", *(f"er+{how}" for how in targets)]
    seconds = _seconds("rotated-mnist", methods, 128, 100)
    return [
        _row(f"er+{how}", seconds, f"{MNIST}, task 3", target) for how, target in targets.items()
    ]


def _layerwise() -> list[Row]:
    """On real images: noise has no leading directions, so that nearly all would be held.

    The mean includes the iterations in which `lpr` computes the layers' inputs again.
    """
    real, methods = benchmark("rotated-mnist"), ("er", "er+lpr", "er+hold")
    steps = {method: Stepper(real, method, 128).step for method in methods}
    median, mean = (
        _in_turns(steps, 100, average=each) for each in (statistics.median, statistics.fmean)
    )
    return [
        dataclasses.replace(
            _row(method, median, f"{MNIST}, task 3", 1.5),
            note=f"the mean instead of the median: {mean[method] / mean['er']:.2f}",
        )
        for method in methods[1:]
    ]


def _on_cifar() -> list[Row]:
    seconds = _seconds("split-cifar100", ["er", "er+apart", "er+agem"], 10, 20)
    return [_row("er+agem", seconds, f"{CIFAR}, task 10", 1.75)]


def _seconds(name: str, methods: list[str], batch_size: int, rounds: int) -> dict[str, float]:
    shape = like(name)
    steps = {method: Stepper(shape, method, batch_size).step for method in methods}
    return _in_turns(steps, rounds)


def _over_ten_tasks() -> Row:
    """GEM takes a reference gradient a past task, so its cost grows: the mean over all tasks."""
    shape = like("split-cifar100")
    steps = {
        f"{method} {task}": Stepper(shape, method, 10, task).step
        for method in ("er", "er+gem")
        for task in range(1, 11)
    }
    seconds = _in_turns(steps, rounds=4)
    total = {
        method: sum(seconds[f"{method} {task}"] for task in range(1, 11))
        for method in ("er", "er+gem")
    }
    return _row("er+gem", total, f"{CIFAR}, mean of tasks 1 to 10", 3.6)


def _late() -> Row:
    shape = like("split-cifar100", tasks=20)
    steps = {f"{t}": Stepper(shape, "er", 10, t).step for t in (2, 20)}
    seconds = _in_turns(steps, rounds=15)
    name = "training step of er in task 20 / in task 2, 20 tasks, batch 10, memory full"
    return Row(name, seconds["20"] / seconds["2"], "at most", 1.1)


def _row(method: str, seconds: dict[str, float], where: str, target: float) -> Row:
    ratios = {name: time / seconds["er"] for name, time in seconds.items()}
    note = f"its passes alone: {ratios['er+apart']:.2f}" if method == "er+agem" else ""
    name = f"training step of {method} / er, {where}"
    return Row(name, ratios[method], "at most", target, note=note)
