"""MEGA (Guo et al., 2020): the current and the old gradient, weighted by their losses.

For the loss l with the gradient g, and l_ref with the reference gradient g_ref:

    I:   gbar = g + l_ref / l  g_ref,  or g_ref alone if l vanishes
    II:  gbar = ||g|| u, with the unit vector u between g and g_ref that maximises
         l cos(u, g) + l_ref cos(u, g_ref), at an angle of at most 90 degrees to g

The limit of 90 degrees comes from the authors' code, not from the text of the paper. The authors
search for the angle theta of II by gradient ascent from three random starts. It has a closed form:
u is parallel to l g/||g|| + l_ref g_ref/||g_ref||, so with the angle a between g and g_ref

    theta = atan2(l_ref sin a, l + l_ref cos a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from twofold.routines.base import Needs, Routine, Step

VANISHED = 1e-10  # a loss at or below this counts as 0, as in the authors' code


@dataclass
class Mega(Routine, name="mega"):
    """Mix g with g_old by their losses. `mega` alone (with `finetune`) is the published method.

    scheme: `II` turns the gradient and keeps its norm; `I` adds g_old to it.
    """

    scheme: Literal["I", "II"] = "II"

    label = "MEGA"
    needs = Needs.OLD

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.old is None or step.old_loss is None:
            return g
        mix = mixed if self.scheme == "I" else rotated
        direction = mix(g, step.old, step.losses["total"], step.old_loss)
        finite = torch.isfinite(direction).all()
        step.mark(projected=finite, unsolved=~finite)
        return torch.where(finite, direction, g)


def mixed(g: Tensor, ref: Tensor, loss: Tensor, ref_loss: Tensor) -> Tensor:
    """Return MEGA-I: g and g_ref with the weights 1 and l_ref / l, or 0 and 1 if l vanishes."""
    return torch.where(loss > VANISHED, torch.addcmul(g, ref, ref_loss / loss), ref)


def rotated(g: Tensor, ref: Tensor, loss: Tensor, ref_loss: Tensor) -> Tensor:
    """Return MEGA-II: a g + b g_ref at the angle theta to g, with the norm of g."""
    norm, ref_norm = torch.linalg.vector_norm(g), torch.linalg.vector_norm(ref)
    cos = (torch.dot(g, ref) / (norm * ref_norm)).clamp(-1, 1)
    sin = (1 - cos.square()).sqrt()
    theta = torch.atan2(ref_loss * sin, loss + ref_loss * cos).clamp(max=math.pi / 2)
    # Turn g / ||g|| towards the component of g_ref / ||g_ref|| orthogonal to it, of norm `sin`.
    towards = torch.where(sin > 0, theta.sin() / sin, 0)
    return torch.addcmul(g * (theta.cos() - towards * cos), ref, towards * norm / ref_norm)
