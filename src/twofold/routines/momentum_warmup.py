"""Warm-up of the momentum: it starts at zero after every task switch and grows to its full size.

In the n-th iteration of a later task, with the optimiser's momentum mu and learning rate lr,

    mu_n = mu (1 - e^(-(n-1)/N)),   lr_n = lr (1 - mu_n) / (1 - mu)

With momentum, a gradient moves the weights by lr / (1 - mu) in sum, and most of this after the
iteration that it belongs to. Right after a switch, old data then answer too late to a step that
harms them. Here, a gradient moves the weights as far, and at once. Long steps without momentum are
stable only where something shortens them along directions of large curvature, such as `hold`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from twofold.component import require, require_at_most
from twofold.errors import UserError
from twofold.routines.base import Routine, Step


@dataclass
class MomentumWarmup(Routine, name="momentum-warmup"):
    """Little momentum after a switch, with longer steps in return. The first task is as usual.

    iterations: after how many iterations all but 1/e of the momentum is back (N).
    """

    iterations: float = 300.0

    once = True
    switches = True

    def __post_init__(self) -> None:
        require(
            self.iterations > 0,
            f"momentum-warmup's iterations must be above 0, not {self.iterations}",
        )
        require_at_most(self, "iterations")

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        super().check(before, momentum)
        if momentum == 0:
            raise UserError("momentum-warmup has nothing to warm up: there is no momentum")

    def momentum(self, momentum: float, step: Step) -> float:
        return momentum * self._share(step)

    def step_size(self, lr: float, step: Step) -> float:
        return lr * (1 - step.momentum * self._share(step)) / (1 - step.momentum)

    def _share(self, step: Step) -> float:
        """Return the share of the momentum that is back."""
        return 1.0 if step.task == 1 else -math.expm1(-(step.iteration - 1) / self.iterations)
