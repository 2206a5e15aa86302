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

    label = "A-GEM"
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
        return along_reference(g, step, -dot, torch.dot(step.old, step.old))


def along_reference(g: Tensor, step: Step, missing: Tensor, square: Tensor) -> Tensor:
    """The gradient nearest to g whose product with g_ref is larger by `missing`, if that is > 0.

    square: <g_ref, g_ref>. A zero or a non-finite reference projects nothing.
    """
    assert step.old is not None
    finite = torch.isfinite(missing) & torch.isfinite(square)
    usable = finite & (square > 0)
    step.mark(projected=usable & (missing > 0), unsolved=~finite)
    weight = (missing / square).clamp(min=0)
    return torch.where(usable, torch.addcmul(g, step.old, weight), g)
