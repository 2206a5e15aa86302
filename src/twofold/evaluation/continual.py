"""Continual evaluation: the accuracy on every task seen so far, after every iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from twofold.benchmarks import Batch, Benchmark
from twofold.choices import Precision
from twofold.evaluation.predictors import Audit, Scores, exact, rounded
from twofold.memory import sample
from twofold.models import FlatModel
from twofold.streams import stream

Compared = list[tuple[Tensor, Tensor]]  # quick and sure predictions


class Evaluator:
    """The evaluation of a network on test images that are drawn once per run.

    precision: the precision of the forward pass. Whole test sets, and therefore AVG, are always
        evaluated in fp32.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        net: FlatModel,
        size: int,
        seed: int,
        precision: Precision = "fp32",
    ) -> None:
        self._pool, self._tasks = benchmark.test, benchmark.tasks
        self._size, self._seed = size, seed
        few = self._pool.batch(self._tasks[0].test[:2]).x
        net.examine(few)
        self._exact = exact(net, few)
        self._rounded = rounded(net, few, self._exact) if precision == "bf16" else None
        self.audit = Audit()
        self._compared: list[Compared] | None = None  # per call of `subset` in `one_evaluation`
        # Whitening images again takes no time beside a convolution, but does beside an MLP.
        self._keeps = not net.has_convolutions
        self._kept: dict[int, Batch] = {}

    @contextmanager
    def one_evaluation(self) -> Iterator[None]:
        """Count several evaluations, of different weights in one iteration, as one in the audit."""
        self._compared = compared = list[Compared]()
        try:
            yield
        finally:
            self._compared = None
        if compared:  # otherwise, whole test sets were evaluated in fp32
            self.audit.finish([pair for part in compared for pair in part])

    def subset(self, tasks: int, scores: Scores) -> Tensor:
        """Return accuracies in percent on the drawn images of the first `tasks` tasks."""
        predict, compared = self._exact, Compared()
        if self._rounded is not None:
            predict, self._rounded.margin = self._rounded, self.audit.margin
        results = []
        for task in range(tasks):
            batch = self._drawn(task)
            predicted = predict(batch.x, scores)
            if self._rounded is not None and self.audit.due:
                sure = self._exact(batch.x, scores)
                compared.append((predicted, sure))
                predicted = sure
            results.append(_accuracy(predicted, batch.y))
        if self._compared is None:
            self.audit.finish(compared)
        else:
            self._compared.append(compared)
        return torch.stack(results)

    def full(self, tasks: int, scores: Scores) -> Tensor:
        """Return accuracies in percent on the whole test sets of the first `tasks` tasks."""
        results = []
        for task in self._tasks[:tasks]:
            batches = map(self._pool.batch, torch.from_numpy(task.test).split(1000))
            parts = [(self._exact(batch.x, scores), batch.y) for batch in batches]
            predicted, labels = (torch.cat(part) for part in zip(*parts, strict=True))
            results.append(_accuracy(predicted, labels))
        return torch.stack(results)

    def _drawn(self, task: int) -> Batch:
        """Return the images of a task that are evaluated after every iteration."""
        if task in self._kept:
            return self._kept[task]
        random = stream(self._seed, "evaluation", task)
        batch = self._pool.batch(sample(self._tasks[task].test, self._size, random))
        if self._keeps:
            self._kept[task] = batch
        return batch

    def state(self) -> dict[str, Any]:
        """Return the audit of evaluation in bf16; nothing in fp32."""
        return dataclasses.asdict(self.audit) if self._rounded is not None else {}

    def restore(self, state: dict[str, Any]) -> None:
        self.audit = Audit(**state)


def _accuracy(predicted: Tensor, labels: Tensor) -> Tensor:
    return (predicted == labels).float().mean() * 100
