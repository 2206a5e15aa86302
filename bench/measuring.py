"""What all rows share: how times are taken, and what they are taken on.

Everything compared is measured in one run, in turns, and a row is a ratio of medians: whatever
else the machine does falls on all alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from twofold import Benchmark, Method, Recipe, UserError
from twofold.models import reduced_resnet18
from twofold.settings import Settings
from twofold.training import Training

LIMIT = 10  # seconds of a comparison, after which no further round begins on a slow processor
FEWEST = 2  # rounds, however long they take


@dataclass(frozen=True)
class Row:
    """A measured ratio, and what it should be."""

    name: str
    value: float
    bound: Literal["at least", "at most"]
    target: float
    unit: str = ""
    note: str = ""

    @property
    def reached(self) -> bool:
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target


def in_turns(
    what: Mapping[str, Callable[[], object]],
    rounds: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    average: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """Return the average seconds of each, taken in turns, without the rounds that warm up.

    rounds: as many as this, or fewer on a processor that would take longer than LIMIT.
    clock: `time.process_time` for what runs in this process on one thread, since other processes
        would take a different share of each.
    """
    seconds: dict[str, list[float]] = {name: [] for name in what}
    began = time.monotonic()
    for turn in range(warm_up + rounds):
        if turn >= warm_up + FEWEST and time.monotonic() - began > LIMIT:
            break
        for name, act in what.items():
            start = clock()
            act()
            seconds[name].append(clock() - start)
    return {name: average(times[warm_up:]) for name, times in seconds.items()}


def benchmark(name: str) -> Benchmark:
    """The real one where its images are at hand, or else one of its shape that can be learned."""
    recipe = Recipe.find(name)
    try:
        return recipe.build(142)
    except UserError:
        return like(name)


def like(name: str, tasks: int | None = None) -> Benchmark:
    """Return a benchmark of this one's shape: a random picture per class, with noise."""
    if name == "rotated-mnist":
        return _noisy(tasks or 3, (28, 28, 1), classes=10, shared=True)
    return _noisy(tasks or 10, (32, 32, 3), classes=10 * (tasks or 10), shared=False)


def _noisy(tasks: int, shape: tuple[int, int, int], classes: int, shared: bool) -> Benchmark:
    torch.manual_seed(0)
    each = classes if shared else classes // tasks
    parts = []
    for task in range(tasks):
        pictures = torch.randint(256, (each, *shape))
        first = 0 if shared else task * each

        def images(
            count: int, pictures: torch.Tensor = pictures, first: int = first
        ) -> tuple[torch.Tensor, torch.Tensor]:
            labels = torch.arange(count) % each
            noise = torch.randint(-128, 128, (count, *shape))
            noisy = (pictures[labels] + noise).clamp(0, 255).to(torch.uint8)
            return noisy, labels + first

        parts.append((*images(2000), *images(1000)))
    model = None if shape[2] == 1 else lambda: reduced_resnet18(classes)
    return Benchmark.from_tensors("noisy", parts, model=model)


class Stepper:
    """Training that stands in a task with its memory full, ready to take single steps."""

    def __init__(
        self,
        benchmark: Benchmark,
        method: str,
        batch_size: int,
        task: int | None = None,
        lr: float = 0.001,
        precision: str = "fp32",
    ) -> None:
        settings = Settings(
            mode="online", lr=lr, batch_size=batch_size, seed=0, eval_precision=precision
        )
        self.training = Training(benchmark, *Method.parse(method).make(), settings)
        self.task, self.n = task or len(benchmark.tasks), 0
        for past in range(1, self.task):
            chosen, _ = self.training._start_task(past)
            self.training._end_task(past, chosen)
        _, self.rows = self.training._start_task(self.task)

    def step(self) -> None:
        self.n += 1
        self.training._iterate(self.task, self.n, self.rows)

    def evaluate(self) -> None:
        self.training._evaluate(partial(self.training.evaluator.subset, self.task))
