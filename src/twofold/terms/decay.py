"""Neuronal decay (Zhankov, 2024): small activations of the hidden layers.

    L + weight E_x sum_l ||a_l(x)||^2

a_l are the inputs of all linear and convolutional layers except for the first, which are the
outputs of the activation functions before them. The mean is over all examples of an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from twofold.component import require, require_at_most
from twofold.terms.base import Addition, Forward


@dataclass
class Decay(Addition, name="decay"):
    """An L2 penalty on the activations of hidden layers (neuronal decay).

    weight: of the sum of squares over all units, per example.
    """

    weight: float = 1e-5

    watches = True

    def __post_init__(self) -> None:
        require(self.weight > 0, f"decay's weight must be above 0, not {self.weight}")
        require_at_most(self, "weight")

    def loss(self, forward: Forward) -> Tensor | None:
        squares = [a.square().sum() / len(a) for a in forward.activations]
        return self.weight * sum(squares[1:], squares[0]) if squares else None
