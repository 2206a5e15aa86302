"""Continual evaluation: the accuracy on every task seen so far, after every iteration."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from twofold.benchmarks import Batch, Benchmark
from twofold.benchmarks.base import Rows
from twofold.choices import Precision
from twofold.evaluation.predictors import Audit, Checked, Predictor, Scores, exact, rounded, times
from twofold.models import FlatModel
from twofold.sequence import firsts
from twofold.streams import sample, stream

Compared = list[tuple[Tensor, Tensor]]  # quick and sure predictions

PARTS = 20  # a search for a new minimum goes on by at least this part of a task's images
KEPT_EASE = 0.9  # how much earlier predictions count when images are ordered by their ease


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
        # Of tasks with one test set, such as a task that returns, the first is evaluated.
        self._firsts = firsts([id(task.test) for task in self._tasks])
        sample_images, *_, tasks = self._pool.batch(self._tasks[0].test[:2])
        net.examine(sample_images, tasks)
        self._exact = exact(net, sample_images)
        self._copy = None if precision == "fp32" else rounded(net, sample_images, self._exact)
        self._precision: Precision = precision
        self.audit = Audit()
        self.choice: dict[str, Any] = {}  # of the precision, with the times that decided it
        self._compared: list[Compared] | None = None  # per call of `subset` in `one_evaluation`
        # Whitening images again takes no time beside a convolution, but does beside an MLP.
        self._keeps = not net.has_convolutions
        self._kept: dict[int, Batch] = {}
        self._ease: dict[int, Tensor] = {}  # per task: how often each image was predicted correctly
        self.checks = Checks()
        if precision == "auto":
            self._choose()

    def _choose(self) -> None:
        """Take the faster precision on some of the run's own images."""
        seconds: dict[Precision, float] = {}
        if self._copy is not None:
            rows = torch.arange(min(len(self._rows(0)), 2 * self._copy.chunk))
            images = self._part(0, rows)
            seconds = times(self._copy, self._exact, images.x, images.tasks)
        self._precision = min(seconds, key=seconds.__getitem__, default="fp32")
        self.choice = {"precision": self._precision, "seconds": seconds}

    @property
    def _rounded(self) -> Checked | None:
        return self._copy if self._precision == "bf16" else None

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
        predict, compared = self._predictor(), Compared()
        results: list[Tensor] = []
        for task, first in enumerate(self._firsts[:tasks]):
            if first < task:
                results.append(results[first])
                continue
            batch = self._drawn(task)
            predicted = predict(batch.x, scores, batch.tasks)
            if self._rounded is not None and self.audit.due:
                exact = self._exact(batch.x, scores, batch.tasks)
                compared.append((predicted, exact))
                predicted = exact
            results.append(_accuracy(predicted, batch.y))
        if self._compared is None:
            self.audit.finish(compared)
        else:
            self._compared.append(compared)
        return torch.stack(results)

    def lowest(self, lowest: Tensor, scores: Scores) -> Tensor:
        """Return the lower of given accuracies and the current ones, task by task.

        An accuracy is no lower once as many images are correct as at the lowest accuracy so far.
        Images that were correct most often come first, so this takes few images.
        """
        results = []
        for task, accuracy in enumerate(lowest.tolist()):
            count = len(self._rows(task))
            least = count + 1 if math.isinf(accuracy) else round(accuracy / 100 * count)
            correct = self._correct(task, scores, least)
            # In single precision, as `_accuracy` computes it.
            current = float(torch.tensor(float(correct)) / count * 100)
            results.append(accuracy if correct >= least else current)
        return lowest.new_tensor(results)

    def _correct(self, task: int, scores: Scores, least: int) -> int:
        """Return the number of correct images, which is no longer counted from `least` on."""
        predict, count, task = self._predictor(), len(self._rows(task)), self._firsts[task]
        ease = self._ease.setdefault(task, torch.zeros(count))
        order = ease.argsort(descending=True)
        correct = done = 0
        while done < count and correct < least:
            # With fewer images than are missing, `least` cannot be reached.
            part = order[done : done + max(least - correct, count // PARTS)]
            batch = self._part(task, part)
            right = (predict(batch.x, scores, batch.tasks) == batch.y).cpu()
            ease[part] = KEPT_EASE * ease[part] + right
            correct, done = correct + int(right.sum()), done + len(part)
        self.checks.add(done, count)
        return correct

    def _predictor(self) -> Predictor:
        if self._rounded is None:
            return self._exact
        self._rounded.margin = self.audit.margin
        return self._rounded

    def full(self, tasks: int, scores: Scores) -> Tensor:
        """Return accuracies in percent on the whole test sets of the first `tasks` tasks."""
        results: list[Tensor] = []
        for task, first in enumerate(self._firsts[:tasks]):
            if first < task:
                results.append(results[first])
                continue
            rows = torch.from_numpy(self._tasks[task].test)
            batches = map(self._pool.batch, rows.split(1000))
            parts = [(self._exact(batch.x, scores, batch.tasks), batch.y) for batch in batches]
            predicted, labels = (torch.cat(part) for part in zip(*parts, strict=True))
            results.append(_accuracy(predicted, labels))
        return torch.stack(results)

    def _drawn(self, task: int) -> Batch:
        """Return the images of a task that are evaluated after every iteration."""
        if task in self._kept:
            return self._kept[task]
        batch = self._pool.batch(self._rows(task))
        if self._keeps:
            self._kept[task] = batch
        return batch

    def _part(self, task: int, part: Tensor) -> Batch:
        """Return some of these images."""
        if self._keeps:
            return self._drawn(task).at(part)
        return self._pool.batch(self._rows(task)[part.numpy()])

    def _rows(self, task: int) -> Rows:
        task = self._firsts[task]
        return sample(self._tasks[task].test, self._size, stream(self._seed, "evaluation", task))

    def audited(self) -> dict[str, Any]:
        """Return the audit of evaluation in bf16; nothing in fp32."""
        return dataclasses.asdict(self.audit) if self._rounded is not None else {}

    def state(self) -> dict[str, Any]:
        return self.audited() | ({"choice": self.choice} if self.choice else {})

    def restore(self, state: dict[str, Any]) -> None:
        self.choice = state.get("choice", {})
        self.audit = Audit(**{name: value for name, value in state.items() if name != "choice"})
        if self.choice:  # a run keeps the precision that it began with, on whatever processor
            self._precision = self.choice["precision"]


@dataclass
class Checks:
    """How many images the search for new minima needed, of those that there are."""

    images: int = 0
    whole: int = 0

    def add(self, images: int, whole: int) -> None:
        self.images, self.whole = self.images + images, self.whole + whole


def _accuracy(predicted: Tensor, labels: Tensor) -> Tensor:
    return (predicted == labels).float().mean() * 100
