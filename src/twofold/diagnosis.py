"""What a step does to the old loss: its slope, its change and its curvature along the step.

For the loss L of old data with the gradient g_old = grad L(w), and a step s to w + s,

    L(w + s) - L(w)  =  <g_old, s>  +  1/2 s' H s  +  ...

A constraint such as GEM's sees the first term only. H is the mean Hessian between w and w + s:
H s is the difference of the gradients at both ends. The Hessian at w alone would miss that units of
a ReLU switch on or off along the way.

L is the loss in evaluation mode, as accuracies are: batch norm uses its running statistics, those
of before the iteration. They move as well, and what this changes is recorded apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from twofold.benchmarks import Batch, Benchmark
from twofold.models import FlatModel
from twofold.objectives.base import cross_entropy
from twofold.streams import sample, stream

EXAMPLES = 256  # training images of all past tasks, drawn anew for every step


@dataclass(frozen=True)
class Before:
    """The old loss before a step."""

    batch: Batch
    weights: Tensor
    buffers: list[Tensor]
    loss: Tensor
    gradient: Tensor


class Diagnosis:
    """Measures steps with images that the run does not see, and leaves the run as it is."""

    def __init__(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        self._benchmark, self._net, self._seed = benchmark, net, seed

    def before(self, task: int, iteration: int) -> Before | None:
        """Return the old loss at the present weights; None in the first task."""
        if task == 1:
            return None
        tasks = {id(each): each for each in self._benchmark.tasks[: task - 1]}  # each once
        past = np.concatenate([each.train for each in tasks.values()])
        random = stream(self._seed, "diagnosis", task, iteration)
        batch = self._benchmark.train.batch(sample(past, EXAMPLES, random))
        weights, buffers = self._net.values.clone(), [b.clone() for b in self._net.buffers()]
        return Before(batch, weights, buffers, *self._old(batch))

    def direction(
        self, before: Before | None, g: Tensor, direction: Tensor, lr: float
    ) -> dict[str, Tensor]:
        """Return the cosine of the objective's gradient g with the old loss's, and what the
        routines' direction would change to first order in a step without momentum.
        """
        if before is None:
            return {}
        return {
            "old_cosine": torch.cosine_similarity(g, before.gradient, dim=0),
            "old_direct": -lr * (before.gradient @ direction),
        }

    def after(self, before: Before | None) -> dict[str, Tensor]:
        """Return the predicted and the actual change of the old loss, and its mean curvature."""
        if before is None:
            return {}
        net = self._net
        s = net.values - before.weights
        with net.using(net.values, before.buffers):
            loss, gradient = self._old(before.batch)
        bend = (gradient - before.gradient) @ s
        found = {
            "old_predicted": before.gradient @ s,
            "old_second": bend / 2,
            "old_change": loss - before.loss,
            "old_curvature": bend / (s @ s),
        }
        if before.buffers:
            with torch.no_grad():
                found["old_statistics"] = self._loss(before.batch) - loss
        return found

    def _old(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the old loss and its gradient at the present weights."""
        self._net.gradient.zero_()
        loss = self._loss(batch)
        loss.backward()
        return loss.detach(), self._net.gradient.clone()

    def _loss(self, batch: Batch) -> Tensor:
        """Return the old loss in evaluation mode: nothing is drawn, no statistic moves."""
        self._net.module.eval()
        try:
            return cross_entropy(batch.y)(self._net(batch.x, batch.tasks))
        finally:
            self._net.module.train()
