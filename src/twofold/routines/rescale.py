"""Rescaling of a direction to the norm of the original gradient.

    g_bar <- g_bar ||g|| / ||g_bar||

GEM's gamma turns the gradient and makes it longer. Rescaling keeps only the turn, so that gamma
does not act as a larger learning rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twofold.errors import UserError
from twofold.routines.base import Routine, Step


@dataclass
class Rescale(Routine, name="rescale"):
    """Give the direction the norm of the objective's gradient before the first routine."""

    scales = True
    once = True

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        super().check(before, momentum)
        acting = [routine for routine in before if routine.overrides("direct")]
        if not acting:
            raise UserError("rescale has nothing to undo: write it after a routine such as gem")
        if not acting[-1].turns:
            raise UserError(f"rescale would undo {acting[-1].name}: write it before")

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if g is step.g:
            return g
        norm, target = step.norm(g), step.norm(step.g)
        factor = torch.where(norm > 0, target / norm, 0)  # a zero direction stays zero
        return step.has_norm(g * factor, norm * factor)
