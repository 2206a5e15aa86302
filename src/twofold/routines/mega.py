"""MEGA (Guo et al., 2020): current and old gradient mixed by how large their losses are.

With the loss l that g is the gradient of, and l_ref that of the reference g_ref:

    I:   gbar = g + l_ref / l  g_ref,  or g_ref alone where l vanishes
    II:  gbar = ||g|| u, with the unit vector u between g and g_ref that maximises
         l cos(u, g) + l_ref cos(u, g_ref), at an angle of at most 90 degrees to g

The authors look for II's angle theta by gradient ascent from three random starts. It has a closed
form: u points to l g/||g|| + l_ref g_ref/||g_ref||, so that with the angle a between g and g_ref

    theta = atan2(l_ref sin a, l + l_ref cos a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from twofold.routines.base import Needs, Routine, Step

VANISHED = 1e-10  # a loss as small as this, as in the authors' code


@dataclass
class Mega(Routine, name="mega"):
    """Mixes g with g_old by their losses. `mega` alone, on the new task's loss, is the paper's.

    scheme: `II` turns the gradient and keeps its norm; `I` adds to it.
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
    """MEGA-I: the weights of the two gradients are 1 and l_ref / l; 0 and 1 where l vanishes."""
    return torch.where(loss > VANISHED, torch.addcmul(g, ref, ref_loss / loss), ref)


def rotated(g: Tensor, ref: Tensor, loss: Tensor, ref_loss: Tensor) -> Tensor:
    """MEGA-II: a g + b g_ref at the angle theta to g, as long as g."""
    norm, ref_norm = torch.linalg.vector_norm(g), torch.linalg.vector_norm(ref)
    cos = (torch.dot(g, ref) / (norm * ref_norm)).clamp(-1, 1)
    sin = (1 - cos.square()).sqrt()
    theta = torch.atan2(ref_loss * sin, loss + ref_loss * cos).clamp(max=math.pi / 2)
    # From g / ||g|| towards the part of g_ref at a right angle to it, which has the norm `sin`.
    towards = torch.where(sin > 0, theta.sin() / sin, 0)
    return torch.addcmul(g * (theta.cos() - towards * cos), ref, towards * norm / ref_norm)
