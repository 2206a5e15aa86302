"""Objectives, which turn the current batch and the memory into weighted loss terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from twofold.benchmarks import Batch, Benchmark
from twofold.benchmarks.base import Rows
from twofold.choices import Mode, Scenario
from twofold.cost import Load
from twofold.method import Part
from twofold.models import FlatModel
from twofold.terms.base import Addition

Loss = Callable[[Tensor], Tensor]  # from logits to their mean loss


Role = Literal["new", "old"]


class Term(NamedTuple):
    """A weighted loss, weight * loss(f_w(x)), on new or old data."""

    role: Role
    weight: float
    x: Tensor
    loss: Loss
    tasks: Tensor | None = None  # the ids of the examples' tasks, if they are known


Pass = list[Term]  # terms that are forwarded together and share batch-norm statistics


@dataclass
class Draw:
    """The samples of one iteration: step 1 of the paper's algorithms 2 and 3."""

    task: int  # t, counted from 1
    iteration: int  # n within the task, counted from 1
    new: Batch
    old: Batch | None = None  # the replay batch
    references: list[Batch] = field(default_factory=list)  # one per past task


def cross_entropy(y: Tensor, classes: Tensor | None = None) -> Loss:
    """Return the mean cross-entropy to the labels y, as a function of the logits.

    classes: the classes that the softmax is over (default: all outputs).
    """
    if classes is None:
        return partial(F.cross_entropy, target=y)

    def loss(logits: Tensor) -> Tensor:
        others = torch.full_like(logits, -torch.inf)
        return F.cross_entropy(others.index_copy(1, classes, logits[:, classes]), y)

    return loss


def is_cross_entropy(loss: Loss) -> bool:
    """Tell whether a loss is the cross-entropy over all outputs, and depends on nothing else."""
    return isinstance(loss, partial) and loss.func is F.cross_entropy


class Objective(Part, kind="objective"):
    """The "what". Subclass it and write the loss in `passes`; all else has defaults.

    replays: the kind of replay batch. `nothing`: none; `total`: b examples of all past tasks
        together; `each`: b examples of each past task.
    stores_all: whether the memory stores every training example, without a limit.
    needs_current: whether the memory must hold examples of the task being learned.
    divides_classes: whether it divides classes into old and new ones, so that no task can return.
    lr: the default learning rate per mode; a benchmark may have tuned ones.
    """

    replays: ClassVar[Literal["nothing", "total", "each"]] = "nothing"
    stores_all: ClassVar[bool] = False
    needs_current: ClassVar[bool] = False
    divides_classes: ClassVar[bool] = False
    lr: ClassVar[Mapping[Mode, float]] = {"offline": 0.1, "online": 0.01}

    # Set by `start`.
    context = ("benchmark", "net", "seed", "terms")
    terms: Sequence[Addition] = ()  # what a method adds to the loss
    benchmark: Benchmark
    net: FlatModel
    seed: int
    _classes_seen: Tensor | None = None  # of each class, whether it was seen, if no task says so

    def check(self, scenario: Scenario, memory_per_class: int) -> None:
        """Raise UserError if this objective can't be used in such a setting.

        memory_per_class: how many examples of a class the memory holds at most.
        """

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        """Prepare for a run, once before the first task."""
        self.benchmark, self.net, self.seed = benchmark, net, seed

    def classes_until(self, task: int) -> Tensor:
        """Return the classes of all tasks up to this one, as an index of the outputs.

        Where boundaries are blurred or unknown, return the classes that were seen so far.
        """
        if self._classes_seen is not None:
            return self._classes_seen.nonzero().flatten()
        classes = {c for each in self.benchmark.tasks[:task] for c in each.classes}
        return torch.tensor(sorted(classes), dtype=torch.long, device=self.net.device)

    def see_classes(self, y: Tensor) -> None:
        """Note the classes of a batch, where boundaries are blurred or unknown."""
        if self._classes_seen is None:
            outputs = 1 + max(c for task in self.benchmark.tasks for c in task.classes)
            self._classes_seen = torch.zeros(outputs, dtype=torch.bool, device=y.device)
        self._classes_seen[y] = True

    def held_out(self, chosen: list[Rows]) -> Rows:
        """Return the rows of a task that are stored at its end but not trained on."""
        return np.empty(0, np.int64)

    def start_task(self, task: int, chosen: list[Rows]) -> Rows:
        """Return the rows to train on. `chosen` will be stored at the end, class by class."""
        return self.benchmark.tasks[task - 1].train

    def end_task(self, task: int, chosen: list[Rows]) -> Rows:
        """Return the rows to store of the task that has ended.

        They count for memories that choose at the start of a task, such as the paper's.
        """
        return np.concatenate(chosen)

    def store(self, rows: Rows) -> None:
        """Note what is to be known later of rows that enter the memory, such as their logits."""

    def augmented(self, batch: Batch, random: np.random.Generator) -> Batch:
        """Return a batch as the network sees it in training."""
        return batch

    def passes(self, draw: Draw) -> list[Pass]:
        """Return the loss of this iteration: weighted terms, grouped by forward pass."""
        raise NotImplementedError

    def before_evaluation(self) -> None:
        """Prepare for an evaluation; the weights to be evaluated are in place."""

    def scores(self, logits: Tensor) -> Tensor:
        """Return the scores of the classes. The prediction is the class with the largest score."""
        return logits

    def cost(self, task: int, batch_size: int, batch_norm: bool) -> Load:
        """Return the load of one gradient of this objective."""
        past = task - 1
        replayed = {"nothing": 0, "total": 1, "each": past}[self.replays] * batch_size
        if past == 0:
            return Load(1, batch_size)
        passes = task if self.replays == "each" and batch_norm else 1
        return Load(passes, batch_size + replayed)

    def further_cost(self, task: int, batch_size: int) -> Load:
        """Return the load of an iteration in addition to the gradient."""
        return Load()

    def evaluation_cost(self, task: int, classes: int, memory_per_class: int) -> Load:
        """Return the load of `before_evaluation`."""
        return Load()
