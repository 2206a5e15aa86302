"""A-GEM (Chaudhry et al., 2019): one constraint, the average loss on all past tasks.

Algorithm 1 and 2 of the paper, PROJECT_AGEM:

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
    """A-GEM's projection.

    reference: `objective` takes g_ref = g_old, the gradient that the objective already has (the
        paper's algorithm 2); an objective without old data gets a pass over a replay batch.
        `frozen` always runs that extra pass, alone and with batch norm frozen, as the authors'
        code does (D5); without batch norm, both give ER the same reference.
    """

    reference: Literal["objective", "frozen"] = "objective"

    once = True

    def asks(self) -> Needs:
        return Needs.OLD if self.reference == "objective" else Needs.FROZEN_OLD

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.old is None:
            return g
        dot = torch.dot(g, step.old)
        # On a CPU the answer is at hand, and mostly no. A GPU must not wait for the host.
        if g.device.type == "cpu" and 0 <= dot.item() < math.inf:
            step.mark(projected=0.0, unsolved=0.0)
            return g
        square = torch.dot(step.old, step.old)
        finite = torch.isfinite(dot) & torch.isfinite(square)
        usable = finite & (square > 0)  # a zero or a non-finite reference projects nothing
        step.mark(projected=usable & (dot < 0), unsolved=~finite)
        weight = (-dot / square).clamp(min=0)
        return torch.where(usable, torch.addcmul(g, step.old, weight), g)
