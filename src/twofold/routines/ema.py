"""An average of the weights is judged, while training goes on with the weights themselves.

Temporal ensembling by an exponential moving average (Soutif-Cormerais et al., 2023):

    w_e <- m w_e + (1 - m) w    after every iteration

for the weights and the batch-norm statistics. Their code starts at the random weights w_0, of
which a share m^n is left after n iterations: 14% after 2,000 with m = 0.999. Here w_e is the
weighted mean of the weights that training has reached, without w_0: m is (m - m^n) / (1 - m^n) in
iteration n, which is Adam's bias correction (Kingma and Ba, 2015, section 3).
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
    """Judges an exponential average; the raw weights' accuracies are recorded beside it.

    decay: m, how much of the average an iteration keeps. It reaches back over some 1 / (1 - m)
        iterations; the paper's m is 0.99.
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
        for average, now in zip(self._buffers, step.net.buffers(), strict=True):
            if now.is_floating_point():
                average.lerp_(now, weight)
            else:
                average.copy_(now)  # the number of batches, which is nothing to average

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        with net.using(self._values, self._buffers):
            yield
