"""What a routine costs: the time of a training step relative to plain ER's, measured in one run.

    make bench            (or: python bench/steps.py [--json FILE])

Steps of all methods are interleaved, and the ratio is that of medians, so that whatever else the
machine does falls on all alike. Images are random: time does not depend on what they show.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from twofold import Benchmark, Method
from twofold.models import reduced_resnet18
from twofold.training import Settings, Training

METHODS = ("er", "er+agem", "er+gem")


def rotated_mnist_like() -> Benchmark:
    """Three tasks of 28x28 digits for the MLP."""
    return _random(tasks=3, shape=(28, 28, 1), classes=10, model=None)


def split_cifar_like() -> Benchmark:
    """Ten tasks of 32x32 images for the reduced ResNet-18."""
    return _random(tasks=10, shape=(32, 32, 3), classes=100, model=lambda: reduced_resnet18(100))


def _random(
    tasks: int, shape: tuple[int, ...], classes: int, model: Callable[[], nn.Module] | None
) -> Benchmark:
    def images(count: int) -> torch.Tensor:
        return torch.randint(256, (count, *shape), dtype=torch.uint8)

    def labels(count: int) -> torch.Tensor:
        return torch.arange(count) % classes

    parts = [(images(1000), labels(1000), images(100), labels(100)) for _ in range(tasks)]
    return Benchmark.from_tensors("random", parts, model=model)


class Stepper:
    """Training that stands in its last task with a full memory, ready to take single steps."""

    def __init__(self, benchmark: Benchmark, method: str, batch_size: int) -> None:
        settings = Settings(online=True, lr=0.001, batch_size=batch_size, seed=0, eval_size=10)
        self.training = Training(benchmark, *Method.parse(method).make(), settings)
        self.task, self.n = len(benchmark.tasks), 0
        for task in range(1, self.task):
            chosen, _ = self.training._start_task(task)
            self.training.memory.add(self.training.objective.end_task(task, chosen))
        _, self.rows = self.training._start_task(self.task)

    def __call__(self) -> float:
        self.n += 1
        start = time.perf_counter()
        self.training._iterate(self.task, self.n, self.rows)
        return time.perf_counter() - start


def ratios(benchmark: Benchmark, batch_size: int, rounds: int) -> dict[str, float]:
    steppers = {method: Stepper(benchmark, method, batch_size) for method in METHODS}
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(rounds):
        for method, step in steppers.items():
            seconds[method].append(step())
    median = {method: statistics.median(times[3:]) for method, times in seconds.items()}
    return {method: median[method] / median["er"] for method in METHODS[1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    for name, benchmark, batch_size, rounds in (
        ("rotated-mnist, batch 128, task 3", rotated_mnist_like(), 128, 60),
        ("split-cifar100, batch 10, task 10", split_cifar_like(), 10, 20),
    ):
        for method, ratio in ratios(benchmark, batch_size, rounds).items():
            rows[f"training step of {method} / er, {name}"] = round(ratio, 3)
    for name, ratio in rows.items():
        print(f"{name:60} {ratio:.2f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
