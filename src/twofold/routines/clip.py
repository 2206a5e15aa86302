"""Gradient clipping (Pascanu et al., 2013, algorithm 1): a limit on the norm of the direction.

g_bar = g               if ||g|| <= limit
g_bar = limit g / ||g||   otherwise
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from twofold.component import require, require_at_most
from twofold.routines.base import Routine, Step


@dataclass
class Clip(Routine, name="clip"):
    """Limit the norm of the direction, from the first task on.

    limit: the largest norm allowed.
    """

    limit: float = 1.0

    first_task = True
    scales = True
    once = True

    def __post_init__(self) -> None:
        require(self.limit > 0, f"clip's limit must be above 0, not {self.limit}")
        require_at_most(self, "limit")

    def direct(self, g: Tensor, step: Step) -> Tensor:
        norm = step.norm(g)
        excess = norm.clamp(min=self.limit) / self.limit  # 1 within the limit
        return step.has_norm(g / excess, norm / excess)
