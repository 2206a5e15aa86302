"""Sharpness-aware minimisation (Foret et al., 2021): the gradient from where the loss is worse.

Equation (2) and algorithm 1 of the paper, with p = 2:

    gbar = gradient of the loss at w + rho g / ||g||

It leads to flat minima, which should suffer less from the first steps of a later task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from twofold.component import require
from twofold.errors import UserError
from twofold.routines.base import Needs, Routine, Step


@dataclass
class Sam(Routine, name="sam"):
    """Follows the objective's gradient at the worst weights nearby, from the first task on.

    rho: how far away they are.
    """

    rho: float = 0.05

    label = "SAM"
    first_task = True
    needs = Needs.ELSEWHERE

    def __post_init__(self) -> None:
        require(self.rho > 0, f"sam's rho must be above 0, not {self.rho}")

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        super().check(before, momentum)
        for other in before:
            if other.overrides("direct"):
                raise UserError(
                    f"sam after {other.name} would drop what {other.name} did: it takes a new "
                    "gradient; write it first"
                )

    def direct(self, g: Tensor, step: Step) -> Tensor:
        assert step.gradient_at is not None  # as asked for
        step.mark(projected=1.0)
        # No gradient, no way up: the quotient's floor keeps w where it is.
        away = self.rho / step.norm(g).clamp(min=1e-12)
        return step.gradient_at(step.net.values + away * g)
