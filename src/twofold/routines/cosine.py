"""A learning rate that falls along a cosine within every task.

In iteration n of a task with N iterations (Loshchilov and Hutter, 2017, equation 5):

    lr_n = lr (floor + (1 - floor) (1 + cos(pi (n - 1) / N)) / 2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twofold.component import require, require_at_most
from twofold.errors import UserError
from twofold.routines.base import Routine, Step


@dataclass
class Cosine(Routine, name="cosine"):
    """Lets the learning rate fall from its full size at a switch to `floor` at the task's end.

    floor: the share of the learning rate that is left at the end.
    iterations: how many it takes to fall (N); none means the whole task.
    """

    floor: float = 0.0
    iterations: int | None = None

    first_task = True
    once = True

    def __post_init__(self) -> None:
        require(0 <= self.floor < 1, f"cosine's floor must be in 0..1, below 1, not {self.floor}")
        require(
            self.iterations is None or self.iterations > 0,
            f"cosine's iterations must be above 0, not {self.iterations}",
        )
        require_at_most(self, "iterations")

    def step_size(self, lr: float, step: Step) -> float:
        length = self.iterations or step.iterations
        if length is None:
            raise UserError(
                "cosine needs the length of a task: cosine(iterations=500), or How(iterations=500)"
            )
        share = min(1.0, (step.iteration - 1) / length)
        return lr * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * share)) / 2)
