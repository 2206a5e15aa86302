"""A learning rate that falls in steps within every task.

In iteration n of a task:

    lr_n = lr factor^floor((n - 1) / every)
"""

from __future__ import annotations

from dataclasses import dataclass

from twofold.component import require, require_at_most
from twofold.routines.base import Routine, Step


@dataclass
class StepDecay(Routine, name="step"):
    """Multiplies the learning rate by a factor at intervals; a switch sets it to its full size.

    every: the iterations from one fall to the next.
    factor: what the learning rate is multiplied by.
    """

    every: int = 1000
    factor: float = 0.1

    first_task = True
    once = True

    def __post_init__(self) -> None:
        require(self.every > 0, f"step's every must be above 0, not {self.every}")
        require_at_most(self, "every")
        require(
            0 < self.factor < 1, f"step's factor must be above 0 and below 1, not {self.factor}"
        )

    def step_size(self, lr: float, step: Step) -> float:
        return lr * self.factor ** ((step.iteration - 1) // self.every)
