"""Plain stochastic gradient descent: follow the objective's gradient as it is."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.routines.base import Routine


@dataclass
class Sgd(Routine, name="sgd"):
    """Follow g unchanged. `er` and `er+sgd` are the same method."""
