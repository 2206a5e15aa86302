"""Sharpness-aware minimisation (Foret et al., 2021): the gradient at nearby weights of high loss.

Equations (2) and (3) and algorithm 1 of Foret et al., with p = 2:

    gbar = gradient of the loss at w + rho g / ||g||

It leads to flat minima, which should suffer less from the first steps of a later task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from twofold.component import require, require_at_most
from twofold.errors import UserError
from twofold.routines.base import Needs, Routine, Step


@dataclass
class Sam(Routine, name="sam"):
    """Follow the gradient at nearby weights with a high loss, from the first task on.

    rho: the distance of these weights.
    """

    rho: float = 0.05

    label = "SAM"
    first_task = True
    needs = Needs.ELSEWHERE

    def __post_init__(self) -> None:
        require(self.rho > 0, f"sam's rho must be above 0, not {self.rho}")
        require_at_most(self, "rho")

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
        # For a zero gradient, the lower limit of the norm avoids a division by zero.
        distance = self.rho / step.norm(g).clamp(min=1e-12)
        return step.gradient_at(step.net.values + distance * g)
