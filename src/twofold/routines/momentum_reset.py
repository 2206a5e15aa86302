"""Reset of the momentum: the velocity is set to zero at every task switch.

v_n = 0 v_{n-1} + g    in the first iteration n of a later task,
v_n = mu v_{n-1} + g   in all others
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twofold.errors import UserError
from twofold.routines.base import Routine, Step


@dataclass
class MomentumReset(Routine, name="momentum-reset"):
    """Start every later task without the velocity of the task before."""

    once = True
    switches = True

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        super().check(before, momentum)
        if momentum == 0:
            raise UserError("momentum-reset has nothing to reset: there is no momentum")

    def momentum(self, momentum: float, step: Step) -> float:
        return 0.0 if step.task > 1 and step.iteration == 1 else momentum
