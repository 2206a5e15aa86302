"""Bias correction (Wu et al., 2019), as the paper's appendix B states it.

L = lambda L_d + (1 - lambda) L_c with lambda = n / (n + m) for n old and m new classes. L_c is ER's
cross-entropy, and L_d distils the previous model's old-class probabilities at temperature 2. Before
every evaluation, alpha and beta, which scale and shift the logits of new classes, are fitted to
validation examples. These are a tenth of the memory and are never trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # which imports its parts when they are first used
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.augmentation import Augmentation
from twofold.benchmarks import Benchmark, Task
from twofold.benchmarks.base import Rows
from twofold.bounded import minimise
from twofold.choices import Mode, Scenario
from twofold.component import require
from twofold.cost import Load
from twofold.errors import UserError
from twofold.models import FlatModel
from twofold.objectives.augmenting import Augmenting
from twofold.objectives.base import Draw, Loss, Pass, Term

TEMPERATURE = 2.0
DIVERGED = 1e12  # with a logit this large, or not finite, the network has diverged
Array = NDArray[np.float64]


@dataclass
class Bic(Augmenting, name="bic"):
    """Bias correction (BiC), for class-incremental benchmarks.

    augment: `crop` (the paper), `pad` (the authors' code, D7) or `none`.
    validation: share of the memory that is held out to fit the bias correction.
    """

    augment: Augmentation = "crop"
    validation: float = 0.1

    label = "BiC"
    replays = "total"
    divides_classes = True
    lr: ClassVar[Mapping[Mode, float]] = {"offline": 0.01, "online": 0.01}

    def __post_init__(self) -> None:
        require(0 < self.validation < 1, f"bic's validation must be in 0..1, not {self.validation}")

    def check(self, scenario: Scenario, memory_per_class: int) -> None:
        if scenario != "class":
            raise UserError(
                "bic corrects a bias towards new classes, so it needs a class-incremental "
                f"benchmark (split-cifar100, split-mini-imagenet), not a {scenario}-incremental one"
            )
        if memory_per_class < 2:
            raise UserError("bic splits the memory 9:1, so memory per class must be at least 2")

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        super().start(benchmark, net, seed)
        self._validation: list[Rows] = []
        self._previous: nn.Module | None = None
        self._correction = (1.0, 0.0)
        self._previous_correction = (1.0, 0.0)

    def held_out(self, chosen: list[Rows]) -> Rows:
        return np.concatenate([rows[self._kept(len(rows)) :] for rows in chosen])

    def start_task(self, task: int, chosen: list[Rows]) -> Rows:
        tasks = self.benchmark.tasks
        self._old_classes = self._columns(tasks[: task - 1])
        self._new_classes = self._columns(tasks[task - 1 : task])
        held_out = self.held_out(chosen)
        self._validation = [*self._validation[: task - 1], held_out]
        rows = np.concatenate(self._validation)
        self._validation_batch = self.benchmark.train.batch(rows)
        train = tasks[task - 1].train
        return train[~np.isin(train, held_out)]

    def end_task(self, task: int, chosen: list[Rows]) -> Rows:
        self.before_evaluation()
        self._previous = self.net.copy()
        self._previous_correction = self._correction
        self._previous_classes = self._new_classes
        return np.concatenate([rows[: self._kept(len(rows))] for rows in chosen])

    def state(self) -> dict[str, Any]:
        """Return the state without what `start_task` creates; the previous model as its weights."""
        temporary = ("_old_classes", "_new_classes", "_validation_batch")
        kept = {name: value for name, value in super().state().items() if name not in temporary}
        previous = self._previous.state_dict() if self._previous is not None else None
        return {**kept, "_previous": dict(previous) if previous is not None else None}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if state["_previous"] is not None:
            self._previous = self.net.copy()
            self._previous.load_state_dict(state["_previous"])

    def _columns(self, tasks: Sequence[Task]) -> Tensor:
        """Return the classes of these tasks, as an index of the network's outputs."""
        classes = [c for task in tasks for c in task.classes]
        return torch.tensor(classes, dtype=torch.long, device=self.net.values.device)

    def _kept(self, stored: int) -> int:
        """Return how many of a class's stored examples are replayed; the others validate."""
        held_out = max(1, round(stored * self.validation))
        return max(1, stored - held_out)

    def passes(self, draw: Draw) -> list[Pass]:
        if draw.old is None or self._previous is None:
            return [[Term("new", 1.0, draw.new.x, self._loss(draw.new.y, 1.0, None, 0.0))]]
        share = len(self._old_classes) / (len(self._old_classes) + len(self._new_classes))
        with torch.no_grad():
            x = torch.cat([draw.new.x, draw.old.x])
            targets = self._soft(self._corrected_previous(self._previous(x)))
        distil = share / len(x)  # L_d is the mean over both batches
        b = len(draw.new.y)
        new = self._loss(draw.new.y, (1 - share) / draw.task, targets[:b], distil)
        old = self._loss(draw.old.y, (1 - share) * (1 - 1 / draw.task), targets[b:], distil)
        return [[Term("new", 1.0, draw.new.x, new), Term("old", 1.0, draw.old.x, old)]]

    def _loss(self, y: Tensor, weight: float, targets: Tensor | None, distil: float) -> Loss:
        def loss(logits: Tensor) -> Tensor:
            total = weight * F.cross_entropy(logits, y)
            if targets is None:
                return total
            log_p = F.log_softmax(logits[:, self._old_classes] / TEMPERATURE, 1)
            return total - distil * (targets * log_p).sum()

        return loss

    def _soft(self, logits: Tensor) -> Tensor:
        return F.softmax(logits[:, self._old_classes] / TEMPERATURE, 1)

    def _corrected_previous(self, logits: Tensor) -> Tensor:
        return correct(logits, self._previous_classes, self._previous_correction)

    def before_evaluation(self) -> None:
        """Compute the logits of the validation images and fit alpha and beta to them."""
        self._correction = (1.0, 0.0)
        if not len(self._old_classes):
            return
        batch = self._validation_batch
        with self.net.evaluating():
            logits = torch.cat([self.net(x) for x in batch.x.split(500)])
        self._correction = fit_bias(
            logits.double().cpu().numpy(),
            batch.y.cpu().numpy(),
            self._old_classes.cpu().numpy(),
            self._new_classes.cpu().numpy(),
        )

    def scores(self, logits: Tensor) -> Tensor:
        return correct(logits, self._new_classes, self._correction)

    def further_cost(self, task: int, batch_size: int) -> Load:
        """Return the load of the previous model, whose probabilities are distilled."""
        return Load(evaluated=2 * batch_size) if task > 1 else Load()

    def evaluation_cost(self, task: int, classes: int, memory_per_class: int) -> Load:
        """Return the load of the validation images that the bias correction is fitted to."""
        held_out = memory_per_class - self._kept(memory_per_class)
        return Load(evaluated=task * classes * held_out) if task > 1 else Load()


def correct(logits: Tensor, classes: Tensor, correction: tuple[float, float]) -> Tensor:
    """Return the logits q_k = alpha o_k + beta for these classes, and o_k for the others."""
    if correction == (1.0, 0.0):
        return logits
    alpha, beta = correction
    corrected = logits.clone()
    corrected[:, classes] = alpha * logits[:, classes] + beta
    return corrected


def fit_bias(logits: Array, y: Rows, old: Rows, new: Rows) -> tuple[float, float]:
    """Return (alpha, beta) that minimise the cross-entropy over the classes seen so far (L_b).

    L_b is convex in two variables, so a trust-region Newton method finds the minimum, even where a
    full Newton step would overshoot. The old classes enter only through their log-sum-exp.
    """
    rest, o = scipy.special.logsumexp(logits[:, old], axis=1), logits[:, new]
    columns = y[:, None] == new[None, :]  # the column of an example's class, if it is new
    if not (np.abs(rest).max() < DIVERGED and np.abs(o).max() < DIVERGED):
        return 1.0, 0.0  # there is nothing to correct in a network that diverged
    target = np.stack([(columns * o).sum(1), columns.sum(1)], 1)  # (o_k, 1) of the correct class

    def probabilities(w: Array) -> tuple[Array, Array]:
        q = w[0] * o + w[1]
        total = np.logaddexp(rest, scipy.special.logsumexp(q, axis=1))
        return np.exp(q - total[:, None]), total

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        p, total = probabilities(w)
        expected = np.stack([(p * o).sum(1), p.sum(1)], 1)
        return float((total - target @ w).mean()), (expected - target).mean(0)

    def hessian(w: Array) -> Array:
        p, _ = probabilities(w)
        expected = np.stack([(p * o).sum(1), p.sum(1)], 1)
        mixed = (p * o).sum(1).mean()
        second = np.array([[(p * o * o).sum(1).mean(), mixed], [mixed, p.sum(1).mean()]])
        covariance: Array = second - expected.T @ expected / len(y)
        return covariance

    alpha, beta = minimise(value_and_gradient, hessian, np.array([1.0, 0.0]))
    return float(alpha), float(beta)
