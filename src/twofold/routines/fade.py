"""Fading of a direction: after a switch, it returns to the objective's gradient.

In the n-th iteration of a task, with the direction g_bar of the routines before,

    d = g + e^(-n/N) (g_bar - g)

A stability gap lasts for tens of iterations. A routine that weighs old data more than the objective
does, such as `hold`, ends in different weights if it acts until the end of the task.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twofold.component import require, require_at_most
from twofold.errors import UserError
from twofold.routines.base import Routine, Step


@dataclass
class Fade(Routine, name="fade"):
    """Let the routines before it act after a switch, and less and less within a task.

    iterations: after how many iterations they act by a share of 1/e (N).
    """

    iterations: float = 300.0

    once = True
    switches = True

    def __post_init__(self) -> None:
        require(self.iterations > 0, f"fade's iterations must be above 0, not {self.iterations}")
        require_at_most(self, "iterations")

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        super().check(before, momentum)
        acting = [routine for routine in before if routine.overrides("direct")]
        if not any(routine.turns for routine in acting):
            raise UserError("fade has nothing to fade: write it after a routine such as hold")
        for routine in acting:
            if routine.scales:
                raise UserError(f"fade would undo {routine.name}: write it before")

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if g is step.g:
            return g
        return torch.lerp(step.g, g, math.exp(-step.iteration / self.iterations))
