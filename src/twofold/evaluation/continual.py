"""Continual evaluation: the accuracy on every task seen so far, after every iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from twofold.benchmarks import Benchmark
from twofold.memory import sample
from twofold.models import FlatModel
from twofold.streams import stream

Precision = Literal["fp32", "bf16"]
Judged = Callable[[Tensor], Tensor]  # from logits to those whose largest is the prediction


class Evaluator:
    """Judges a network on test images that are drawn once a run and kept ready on the device."""

    def __init__(self, benchmark: Benchmark, net: FlatModel, size: int, seed: int) -> None:
        self._benchmark, self._net = benchmark, net
        # Convolutions run fastest on chunks whose activations fit the cache; an MLP on all at once.
        self._chunk = 50 if net.has_batch_norm else 1000
        self._batches = [
            benchmark.test.batch(sample(task.test, size, stream(seed, "evaluation", k)))
            for k, task in enumerate(benchmark.tasks)
        ]

    def subset(self, tasks: int, judged: Judged) -> Tensor:
        """Accuracies in percent on the drawn images of the first `tasks` tasks."""
        batches = self._batches[:tasks]
        return torch.stack([self._accuracy(batch.x, batch.y, judged) for batch in batches])

    def full(self, tasks: int, judged: Judged) -> Tensor:
        """Accuracies in percent on the whole test sets of the first `tasks` tasks."""
        results = []
        for task in self._benchmark.tasks[:tasks]:
            correct = torch.zeros((), device=self._net.values.device)
            for rows in torch.from_numpy(task.test).split(1000):
                batch = self._benchmark.test.batch(rows)
                correct += self._accuracy(batch.x, batch.y, judged) * len(rows)
            results.append(correct / len(task.test))
        return torch.stack(results)

    def _accuracy(self, x: Tensor, y: Tensor, judged: Judged) -> Tensor:
        with self._net.evaluating():
            logits = torch.cat([self._net(part) for part in x.split(self._chunk)])
            return (judged(logits).argmax(1) == y).float().mean() * 100
