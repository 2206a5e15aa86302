"""What a step does to the old loss: its slope, its change and its curvature along the step.

For the loss L of old data with the gradient g_old = grad L(w), and a step s to w + s,

    L(w + s) - L(w)  =  <g_old, s>  +  1/2 s' H s  +  ...

A constraint such as GEM's sees the first term only.
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
        return Before(batch, self._net.values.clone(), *self._old(batch))

    def cosine(self, before: Before | None, g: Tensor) -> dict[str, Tensor]:
        """Return the cosine of the objective's gradient with the old loss's."""
        if before is None:
            return {}
        return {"old_cosine": torch.cosine_similarity(g, before.gradient, dim=0)}

    def after(self, before: Before | None) -> dict[str, Tensor]:
        """Return the predicted and the actual change of the old loss, and its mean curvature."""
        if before is None:
            return {}
        s = self._net.values - before.weights
        loss, gradient = self._old(before.batch)
        return {
            "old_predicted": before.gradient @ s,
            "old_change": loss - before.loss,
            "old_curvature": (gradient - before.gradient) @ s / (s @ s),
        }

    def _old(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return loss and gradient in evaluation mode: nothing is drawn, no statistic moves."""
        net = self._net
        net.gradient.zero_()
        net.module.eval()
        try:
            loss = cross_entropy(batch.y)(net(batch.x, batch.tasks))
            loss.backward()
        finally:
            net.module.train()
        return loss.detach(), net.gradient.clone()
