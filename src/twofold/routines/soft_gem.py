"""eps-SOFT-GEM (Hu et al., 2020): A-GEM with a stricter constraint.

    minimise_gbar  1/2 ||g - gbar||^2    subject to   <gbar, g_ref> >= eps ||g|| ||g_ref||,

    gbar = g                                            if cos(g, g_ref) >= eps
    gbar = g + (eps - cos(g, g_ref)) ||g|| g_ref / ||g_ref||   otherwise

eps in 0..1 balances new against old data: 0 is A-GEM, and with 1 the direction must agree with
the reference completely. Hu et al. give eps no unit. Here its unit is ||g|| ||g_ref||, so that it
means the same at every scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from twofold.component import require
from twofold.routines.agem import along_reference
from twofold.routines.base import Needs, Routine, Step


@dataclass
class SoftGem(Routine, name="soft-gem"):
    """A-GEM with a minimum agreement with the reference g_old.

    eps: the minimum agreement, as a cosine; 0 is A-GEM.
    """

    eps: float = 0.1

    needs = Needs.OLD
    once = True

    def __post_init__(self) -> None:
        require(0 <= self.eps <= 1, f"soft-gem's eps must be in 0..1, not {self.eps}")

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.old is None:
            return g
        dot, square = torch.dot(g, step.old), torch.dot(step.old, step.old)
        return along_reference(g, step, self.eps * step.norm(g) * square.sqrt() - dot, square)
