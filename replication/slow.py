"""A plugin that was tried and not kept: shorter steps in all tasks after the first one."""

from __future__ import annotations

from dataclasses import dataclass

from twofold import Routine, Step


@dataclass
class Slow(Routine, name="slow"):
    """Multiply the learning rate of later tasks by a factor."""

    factor: float = 0.25

    def step_size(self, lr: float, step: Step) -> float:
        return lr if step.task == 1 else lr * self.factor
