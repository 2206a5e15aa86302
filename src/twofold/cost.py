"""The cost of training: passes through the network, and images in them."""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """A number of passes with gradients, of images in them, and of images without gradients."""

    passes: float = 0
    images: float = 0
    evaluated: float = 0

    def __add__(self, other: Load) -> Load:
        return Load(*map(operator.add, dataclasses.astuple(self), dataclasses.astuple(other)))

    def __mul__(self, times: float) -> Load:
        return Load(*(times * part for part in dataclasses.astuple(self)))
