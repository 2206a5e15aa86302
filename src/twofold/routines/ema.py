"""Temporal ensembling by an exponential moving average (Soutif-Cormerais et al., 2023).

An average of the weights is evaluated, while training continues with the weights themselves:

    w_e <- m w_e + (1 - m) w    after every iteration

for the weights and the batch-norm statistics. The code of Soutif-Cormerais et al. starts from the
random weights w_0, which still have the share m^n after n iterations (14% for m = 0.999 and
n = 2,000). Here w_e leaves w_0 out and is the weighted mean of the weights after each iteration.
For this, m is replaced by (m - m^n) / (1 - m^n) in iteration n, which is the bias correction of
Adam (Kingma and Ba, 2015, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from twofold.component import require
from twofold.models.flat import FlatModel
from twofold.routines.base import Routine, Step


@dataclass
class Ema(Routine, name="ema"):
    """Evaluate an exponential average of the weights; the trained weights are evaluated as well.

    decay: m, the share of the average that an iteration keeps. The average reaches back over
        about 1 / (1 - m) iterations. The paper's m is 0.99.
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        require(
            0 <= self.decay < 1, f"ema's decay must be at least 0 and below 1, not {self.decay}"
        )

    def start(self, net: FlatModel) -> None:
        self._count = 0
        self._values = net.values.clone()
        self._buffers = [buffer.clone() for buffer in net.buffers()]

    def after_step(self, step: Step) -> None:
        self._count += 1
        weight = (1 - self.decay) / (1 - self.decay**self._count)
        self._values.lerp_(step.net.values, weight)
        for average, buffer in zip(self._buffers, step.net.buffers(), strict=True):
            if buffer.is_floating_point():
                average.lerp_(buffer, weight)
            else:
                average.copy_(buffer)  # the number of batches is not averaged

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        with net.using(self._values, self._buffers):
            yield
