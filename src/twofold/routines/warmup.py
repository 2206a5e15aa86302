"""Warm-up of the learning rate: it starts small after every task switch and grows to its full size.

In the n-th of the first N iterations after a switch,

    linear:  lr_n = lr n / N                 (gradual warm-up: Goyal et al., 2017, section 2.2)
    cosine:  lr_n = lr (1 - cos(pi n / N)) / 2
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from twofold.component import require, require_at_most
from twofold.routines.base import Routine, Step


@dataclass
class Warmup(Routine, name="warmup"):
    """Small steps after a switch. The first task, in which nothing can be forgotten, has none.

    iterations: how many iterations it takes to reach the full learning rate (N).
    shape: `linear`, or `cosine`, which is smaller in the first half and larger in the second.
    """

    iterations: int = 500
    shape: Literal["linear", "cosine"] = "linear"

    once = True
    switches = True

    def __post_init__(self) -> None:
        require(self.iterations > 0, f"warmup's iterations must be above 0, not {self.iterations}")
        require_at_most(self, "iterations")

    def step_size(self, lr: float, step: Step) -> float:
        if step.task == 1 or step.iteration >= self.iterations:
            return lr
        share = step.iteration / self.iterations
        return lr * (share if self.shape == "linear" else (1 - math.cos(math.pi * share)) / 2)
