"""Distillation from the network before the task (Li and Hoiem, 2016; Hinton et al., 2015).

    L + weight T^2 E_x KL( softmax(f'(x) / T) || softmax(f(x) / T) )

f' is the network at the end of the last task, and both softmaxes are over the classes of past
tasks. The mean is over all examples of an iteration, new and replayed. With scenario task, every
past task has a softmax over its own classes, and their divergences are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.benchmarks import Benchmark
from twofold.choices import Scenario
from twofold.component import require, require_at_most
from twofold.cost import Load
from twofold.errors import UserError
from twofold.models import FlatModel
from twofold.terms.base import Addition, Forward


@dataclass
class Distil(Addition, name="distil"):
    """Distillation of the network before the task, over the classes of past tasks.

    weight: of the divergence.
    temperature: T; a larger one lets small probabilities count more.
    """

    weight: float = 1.0
    temperature: float = 2.0

    context = (*Addition.context, "_previous", "_classes")

    def __post_init__(self) -> None:
        require(self.weight > 0, f"distil's weight must be above 0, not {self.weight}")
        require(
            self.temperature > 0, f"distil's temperature must be above 0, not {self.temperature}"
        )
        require_at_most(self, "weight", "temperature")

    def check(self, objective: str, scenario: Scenario) -> None:
        if objective == "bic":
            raise UserError("bic distils the network before the task already: leave distil out")

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        super().start(benchmark, net, seed)
        if net.told:
            raise UserError(
                "distil compares the outputs of past tasks, and a network that takes task ids "
                "returns those of one task: leave distil out"
            )
        self._previous: nn.Module | None = None

    def start_task(self, task: int) -> None:
        past = [set(each.classes) for each in self.benchmark.tasks[: task - 1]]
        if self.net.own is None:
            past = [set().union(*past)]
        self._classes = [
            torch.tensor(sorted(group), dtype=torch.long, device=self.net.device) for group in past
        ]

    def end_task(self, task: int) -> None:
        self._previous = self.net.copy()

    def loss(self, forward: Forward) -> Tensor | None:
        if self._previous is None:
            return None
        with torch.no_grad():
            before = self._log_p(self._previous(forward.x))
        pairs = zip(self._log_p(forward.logits), before, strict=True)
        divergences = [F.kl_div(*pair, reduction="batchmean", log_target=True) for pair in pairs]
        return self.weight * self.temperature**2 * sum(divergences[1:], divergences[0])

    def _log_p(self, logits: Tensor) -> list[Tensor]:
        """Return the log-probabilities of each group of classes."""
        return [F.log_softmax(logits[:, group] / self.temperature, 1) for group in self._classes]

    def cost(self, task: int, images: float) -> Load:
        return Load(evaluated=images) if task > 1 else Load()

    def state(self) -> dict[str, Any]:
        previous = None if self._previous is None else dict(self._previous.state_dict())
        return {**super().state(), "previous": previous}

    def restore(self, state: dict[str, Any]) -> None:
        if state["previous"] is not None:
            self._previous = self.net.copy()
            self._previous.load_state_dict(state["previous"])
