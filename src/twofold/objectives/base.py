"""What an objective is: it turns the current batch and the memory into weighted loss terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from twofold.benchmarks import Batch, Benchmark
from twofold.benchmarks.base import Rows, Scenario
from twofold.component import Component
from twofold.models import FlatModel

Loss = Callable[[Tensor], Tensor]  # from logits to the mean loss over them


Role = Literal["new", "old"]


class Term(NamedTuple):
    """weight * loss(f_w(x)), on new data or on old."""

    role: Role
    weight: float
    x: Tensor
    loss: Loss


Pass = list[Term]  # terms that are forwarded together, and so share batch-norm statistics


@dataclass
class Draw:
    """What one iteration samples: step 1 of the paper's algorithms 2 and 3."""

    task: int  # t, counted from 1
    iteration: int  # n within the task, counted from 1
    new: Batch
    old: Batch | None = None  # the replay batch
    references: list[Batch] = field(default_factory=list)  # one a past task


def cross_entropy(y: Tensor) -> Loss:
    """The mean cross-entropy to the labels y, as a function of the logits."""
    return partial(F.cross_entropy, target=y)


class Objective(Component, kind="objective"):
    """The "what". Subclass it and say the loss in `passes`; the rest has defaults.

    replays: what a replay batch is. `nothing`; `total`: b examples of all past tasks together;
        `each`: b of each past task.
    stores_all: the memory takes every training example, whatever its quota.
    """

    replays: ClassVar[Literal["nothing", "total", "each"]] = "nothing"
    stores_all: ClassVar[bool] = False

    # Set by `start`.
    context = ("benchmark", "net", "seed")
    benchmark: Benchmark
    net: FlatModel
    seed: int

    def check(self, scenario: Scenario, memory_per_class: int) -> None:
        """Raise UserError where this objective can't be used so."""

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        """Once, before the first task."""
        self.benchmark, self.net, self.seed = benchmark, net, seed

    def held_out(self, chosen: list[Rows]) -> Rows:
        """The rows of a task that are not trained on, of those that will be stored."""
        return np.empty(0, np.int64)

    def start_task(self, task: int, chosen: list[Rows]) -> Rows:
        """The rows to train on in this task; `chosen` will be stored at its end, class by class."""
        return self.benchmark.tasks[task - 1].train

    def end_task(self, task: int, chosen: list[Rows]) -> Rows:
        """The rows to store of the task that has ended."""
        return np.concatenate(chosen)

    def augmented(self, batch: Batch, random: np.random.Generator) -> Batch:
        """A batch as the network shall see it in training."""
        return batch

    def passes(self, draw: Draw) -> list[Pass]:
        """The loss of this iteration: the weighted terms, grouped by forward pass."""
        raise NotImplementedError

    def before_evaluation(self) -> None:
        """Called with the weights to be judged in place, before they are."""

    def judged(self, logits: Tensor) -> Tensor:
        """The logits whose largest is the prediction."""
        return logits
