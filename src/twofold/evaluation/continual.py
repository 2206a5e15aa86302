"""Continual evaluation: the accuracy on every task seen so far, after every iteration."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import torch
from torch import Tensor

from twofold.benchmarks import Benchmark
from twofold.evaluation.predictors import Audit, Judged, audited, exact
from twofold.memory import sample
from twofold.models import FlatModel
from twofold.streams import stream

Precision = Literal["fp32", "bf16"]

__all__ = ["Evaluator", "Judged", "Precision"]


class Evaluator:
    """Judges a network on test images that are drawn once a run and kept ready on the device.

    precision: of the forward pass. Whole test sets, and so AVG, are judged in fp32 in any case.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        net: FlatModel,
        size: int,
        seed: int,
        precision: Precision = "fp32",
    ) -> None:
        self._benchmark, self._size, self._seed = benchmark, size, seed
        few = benchmark.test.batch(benchmark.tasks[0].test[:2]).x
        self._exact = self._usual = exact(net, few)
        self.audit: Audit | None = None
        if precision == "bf16":
            self.audit = Audit()
            self._usual = audited(net, few, self.audit)
        self._x, self._y = few[:0], list[Tensor]()  # of the tasks seen so far

    def subset(self, tasks: int, judged: Judged) -> Tensor:
        """Accuracies in percent on the drawn images of the first `tasks` tasks."""
        self._draw(tasks)
        labels = self._y[:tasks]
        sizes = [len(y) for y in labels]
        predicted = self._usual(self._x[: sum(sizes)], judged).split(sizes)
        return torch.stack([_accuracy(p, y) for p, y in zip(predicted, labels, strict=True)])

    def full(self, tasks: int, judged: Judged) -> Tensor:
        """Accuracies in percent on the whole test sets of the first `tasks` tasks."""
        results = []
        for task in self._benchmark.tasks[:tasks]:
            batches = map(self._benchmark.test.batch, torch.from_numpy(task.test).split(1000))
            parts = [(self._exact(batch.x, judged), batch.y) for batch in batches]
            predicted, labels = (torch.cat(part) for part in zip(*parts, strict=True))
            results.append(_accuracy(predicted, labels))
        return torch.stack(results)

    def _draw(self, tasks: int) -> None:
        """Make the images of the first `tasks` tasks ready, one behind the other."""
        for k in range(len(self._y), tasks):
            random = stream(self._seed, "evaluation", k)
            batch = self._benchmark.test.batch(
                sample(self._benchmark.tasks[k].test, self._size, random)
            )
            # An empty tensor would make the result lose its layout, channels last.
            self._x = torch.cat([self._x, batch.x]) if self._y else batch.x
            self._y.append(batch.y)

    def state(self) -> dict[str, Any]:
        return dataclasses.asdict(self.audit) if self.audit else {}

    def restore(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self.audit, name, value)


def _accuracy(predicted: Tensor, labels: Tensor) -> Tensor:
    return (predicted == labels).float().mean() * 100
