"""Elastic weight consolidation (Kirkpatrick et al., 2017): weights that mattered stay.

    L + strength / 2 sum_k sum_i F_k,i (w_i - w_k,i)^2

with a sum over past tasks k. w_k are the weights at the end of task k, and F_k is the diagonal of
the Fisher information there: the mean over its examples of the squared gradient of log p(y | x),
with y drawn from the network's own prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from twofold.benchmarks import Benchmark
from twofold.component import require, require_at_most
from twofold.models import FlatModel
from twofold.streams import sample, stream
from twofold.terms.base import Addition


@dataclass
class Ewc(Addition, name="ewc"):
    """A quadratic penalty on changes of weights that mattered for past tasks (EWC).

    strength: of the penalty.
    examples: of each task, from which its Fisher information is computed.
    """

    strength: float = 100.0
    examples: int = 200

    label = "EWC"

    def __post_init__(self) -> None:
        require(self.strength > 0, f"ewc's strength must be above 0, not {self.strength}")
        require(self.examples > 0, f"ewc's examples must be above 0, not {self.examples}")
        require_at_most(self, "strength", "examples")

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        super().start(benchmark, net, seed)
        self._past = 0
        # Of all past tasks together: sum F, sum F w_k, and sum F w_k^2 over all weights.
        self._fisher = torch.zeros_like(net.values)
        self._centre = torch.zeros_like(net.values)
        self._rest = torch.zeros((), device=net.device)

    def end_task(self, task: int) -> None:
        fisher, w = self.fisher(task), self.net.values
        self._fisher += fisher
        self._centre += fisher * w
        self._rest += (fisher * w * w).sum()
        self._past = task

    def fisher(self, task: int) -> Tensor:
        """Return the diagonal of the Fisher information of a task at the current weights."""
        net, random = self.net, stream(self.seed, "term", task)
        rows = sample(self.benchmark.tasks[task - 1].train, self.examples, random)
        total = torch.zeros_like(net.values)
        net.module.eval()
        for row in rows:
            batch = self.benchmark.train.batch(rows[rows == row])
            logits = net(batch.x, batch.tasks)
            p = F.softmax(logits.detach().double()[0], 0).nan_to_num(1.0).cpu().numpy()
            y = torch.tensor([int(random.choice(len(p), p=p / p.sum()))], device=logits.device)
            net.gradient.zero_()
            F.cross_entropy(logits, y).backward()
            total += net.gradient.square()
        net.module.train()
        return total / len(rows)

    def pull(self, values: Tensor) -> tuple[Tensor, Tensor] | None:
        if not self._past:
            return None
        product = self._fisher * values
        value = ((product - 2 * self._centre) * values).sum() + self._rest
        return self.strength / 2 * value, self.strength * (product - self._centre)
