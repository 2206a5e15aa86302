"""Training of one objective alone, and the value of its loss at given logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from helpers.benchmarks import class_benchmark
from twofold.benchmarks import Benchmark
from twofold.objectives import Draw, Objective, Term
from twofold.results import Result
from twofold.settings import Settings
from twofold.training import Training

CLASSES, OUTPUTS = 3, 9  # of a task; of all three tasks


def trained(
    objective: Objective, benchmark: Benchmark | None = None, tasks: int = 2, **options
) -> tuple[Training, Result]:
    options = {"lr": 0.05, "batch_size": 10, "iterations": 6, "memory_per_class": 10} | options
    settings = Settings(seed=0, tasks=tasks, **options)
    training = Training(benchmark or class_benchmark(), objective, [], settings)
    return training, training.run()


def noisy_benchmark() -> Benchmark:
    """Class-incremental with classes that overlap, so that the best correction is finite."""
    random = torch.Generator().manual_seed(0)

    def points(task: int, count: int) -> tuple[Tensor, Tensor]:
        y = torch.arange(count) % CLASSES + CLASSES * task
        centres = 1.5 * torch.eye(OUTPUTS)
        return centres[y] + torch.randn(count, OUTPUTS, generator=random), y

    tasks = [(*points(k, 300), *points(k, 90)) for k in range(3)]
    return Benchmark.from_tensors("noisy", tasks, model=lambda: nn.Linear(OUTPUTS, OUTPUTS))


def two_logits(seed: int, b: int = 10) -> tuple[Tensor, Tensor]:
    """Logits for a new and an old batch, whatever network they may come from."""
    new, old = 3 * torch.randn(2, b, OUTPUTS, generator=torch.Generator().manual_seed(seed))
    return new, old


def value(terms: list[Term], new: Tensor, old: Tensor) -> Tensor:
    """The objective's value at these logits."""
    logits = {"new": new, "old": old}
    return sum((t.weight * t.loss(logits[t.role]) for t in terms), torch.zeros(()))


def drawn(benchmark: Benchmark, task: int, memory: np.ndarray) -> Draw:
    rows = benchmark.tasks[task - 1].train[:10]
    return Draw(task, 1, benchmark.train.batch(rows), benchmark.train.batch(memory[:10]))
