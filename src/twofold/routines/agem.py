"""A-GEM (Chaudhry et al., 2019): one constraint, the average loss on all past tasks.

Equation (11) and algorithm 2 of Chaudhry et al., and PROJECT_AGEM in the paper's algorithm 1:

    g_bar = g                                  if <g, g_ref> >= 0
    g_bar = g - <g, g_ref> / <g_ref, g_ref> g_ref   otherwise
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from twofold.routines.base import Needs, Routine, Step


@dataclass
class Agem(Routine, name="agem"):
    """The projection of A-GEM.

    reference: `objective` uses g_ref = g_old, the gradient of the objective's old-data loss (the
        paper's algorithm 2). For an objective without old data, it is computed in a pass over a
        replay batch. `frozen` always runs such a pass, with batch norm frozen, as the authors' code
        does (D5). Without batch norm, both give the same reference with ER.
    """

    reference: Literal["objective", "frozen"] = "objective"

    label = "A-GEM"
    once = True

    def asks(self) -> Needs:
        return Needs.OLD if self.reference == "objective" else Needs.FROZEN_OLD

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.old is None:
            return g
        dot = torch.dot(g, step.old)
        # On a CPU, skip the projection if it is not needed. A GPU must not wait for the CPU.
        if g.device.type == "cpu" and 0 <= dot.item() < math.inf:
            step.mark(projected=0.0, unsolved=0.0)
            return g
        return along_reference(g, step, -dot, torch.dot(step.old, step.old))


def along_reference(g: Tensor, step: Step, missing: Tensor, square: Tensor) -> Tensor:
    """Return the vector nearest to g whose product with g_ref exceeds <g, g_ref> by `missing`.

    If `missing` is not positive, or the reference is zero or not finite, return g.

    square: <g_ref, g_ref>.
    """
    assert step.old is not None
    finite = torch.isfinite(missing) & torch.isfinite(square)
    usable = finite & (square > 0)
    step.mark(projected=usable & (missing > 0), unsolved=~finite)
    weight = (missing / square).clamp(min=0)
    return torch.where(usable, torch.addcmul(g, step.old, weight), g)
