"""A plugin that was tried and not kept: the gradient of old data where the step leads.

With the gradient r(w) of the loss on a batch of old examples, and the weights v = w - reach g to
which a step leads,

    use=correct:  d = g + w_o (r(v) - r(w))           a look ahead for the part of old data in g
    use=project:  d = g - min(0, <g, r(v)>) / ||r(v)||^2 r(v)      A-GEM's rule with r(v) for r(w)

With momentum 0.9 and a learning rate of 0.1, a gradient moves the weights by 0.1 g at once, and by
1.0 g in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from twofold import Needs, Routine, Step
from twofold.benchmarks import Batch
from twofold.gradients import frozen_gradient


@dataclass
class Ahead(Routine, name="ahead"):
    """Take the gradient of old data where the step leads."""

    reach: float = 0.1
    use: Literal["correct", "project"] = "correct"
    examples: int = 256

    needs = Needs.OLD | Needs.MEMORY

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.memory is None or step.old_weight is None:
            return g
        old = step.memory(self.examples)
        ahead = self._gradient(step, old, step.net.values - self.reach * g)
        if self.use == "correct":
            here = self._gradient(step, old, step.net.values.clone())
            return g + step.old_weight * (ahead - here)
        violation = (g @ ahead).clamp(max=0)
        step.mark(projected=(violation < 0).float())
        return g - violation / (ahead @ ahead).clamp(min=1e-12) * ahead

    def _gradient(self, step: Step, old: Batch, weights: Tensor) -> Tensor:
        kept = step.net.gradient.clone()  # g may lie there
        with step.net.using(weights):
            gradient = frozen_gradient(step.net, [old], affine=True)[0].clone()
        step.net.gradient.copy_(kept)
        return gradient
