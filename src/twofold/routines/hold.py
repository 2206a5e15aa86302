"""Hold: the gradient of new data is held where old data would notice it.

The objective's gradient has two parts, g = g_n + w_o g_old, from new and from old data. The step on
new data is the proximal step that keeps each layer's outputs on old data (as in LPR), and old
data's own gradient, which repairs what is lost, is followed as it is:

    d = gain g_n P^-1 + w_o g_old,   P = I + omega / m M

per layer, where M = Z'Z / n is the second moment of the layer's inputs on n old examples, and m
the mean of its eigenvalues, so that omega has no unit. Only the leading eigenvectors of M, which
carry a `share` of its trace, are held. With V = diag(c / (1 + c))^1/2 U' for these eigenvectors U
and c = omega / m times their eigenvalues,

    g_n P^-1 = g_n - (g_n V') V

What is held hardly moves, so M is computed rarely. docs/closing-the-gap.md derives the rule.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twofold.component import require
from twofold.cost import Load
from twofold.errors import UserError
from twofold.models.flat import FlatModel
from twofold.models.layers import CHUNK, layers, unknown_parameters, watching
from twofold.routines.base import Needs, Routine, Step

ROWS = 20_000  # of Z in a layer: enough for a second moment, and a convolution has many per image


@dataclass
class Hold(Routine, name="hold"):
    """Hold the gradient of new data along the inputs of old data, layer by layer.

    omega: how strongly; 0 holds nothing.
    gain: the length of the gradient of new data where nothing holds it.
    share: the share of old data's second moment that is held, by its leading directions.
    every: after how many iterations M is computed again; it always is at a task switch.
    examples: how many examples of the memory M is computed from.
    """

    omega: float = 16.0
    gain: float = 2.0
    share: float = 0.95
    every: int = 1000
    examples: int = 1000

    label = "Hold"
    needs = Needs.OLD | Needs.MEMORY
    context = ("_layers",)

    def __post_init__(self) -> None:
        require(self.omega >= 0, f"hold's omega must be at least 0, not {self.omega}")
        require(self.gain > 0, f"hold's gain must be above 0, not {self.gain}")
        require(
            0 < self.share <= 1, f"hold's share must be above 0 and at most 1, not {self.share}"
        )
        require(self.every > 0, f"hold's every must be above 0, not {self.every}")
        require(self.examples > 0, f"hold's examples must be above 0, not {self.examples}")

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        super().check(before, momentum)
        for other in before:
            if other.overrides("direct"):
                raise UserError(
                    f"hold divides the objective's own gradient into new and old, which "
                    f"{other.name} has changed: write hold first"
                )

    def start(self, net: FlatModel) -> None:
        self._layers = layers(net, self.name)
        unknown = unknown_parameters(net, self._layers)
        if unknown:
            raise UserError(
                f"hold knows linear layers, convolutions and batch norm; the network's "
                f"{unknown[0]!r} belongs to a different layer"
            )
        self._held: dict[int, Tensor] = {}  # V, by the layer's position

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.memory is None or step.old is None:
            return g
        if step.old_weight is None:
            raise UserError(
                "hold needs the weight of old data in the loss: let how.old return (loss, weight)"
            )
        if (step.iteration - 1) % self.every == 0:
            self._renew(step.net, step.memory(self.examples).x)
        step.mark(projected=1.0)
        new = g - step.old_weight * step.old
        for k, V in self._held.items():
            self._layers[k].change(new, functools.partial(_held, V=V))
        return new.mul_(self.gain).add_(step.old, alpha=step.old_weight)

    def cost(self, task: int) -> Load:
        """Return the load of computing each layer's inputs."""
        return Load(evaluated=self.examples / self.every) if task > 1 else Load()

    def _renew(self, net: FlatModel, x: Tensor) -> None:
        """Compute V of every layer from its inputs on these images."""
        if not len(x):
            raise UserError("hold needs examples in the memory, and there are none")
        frozen, watched = net.frozen_batch_norm(affine=True), watching(self._layers, ROWS)
        with torch.no_grad(), frozen, watched as seen:
            for chunk in x.split(CHUNK):
                net(chunk)
        self._held = {k: self._directions(inputs.moment()) for k, inputs in seen.items()}

    def _directions(self, M: Tensor) -> Tensor:
        """Return V for a second moment M, or for one per channel, which is held whole.

        In a network that diverges nothing is held.
        """
        if not torch.isfinite(M).all():
            return torch.zeros_like(M)
        eigenvalues, U = torch.linalg.eigh(M)  # in ascending order
        eigenvalues = eigenvalues.clamp(min=0)
        c = self.omega * eigenvalues / eigenvalues.mean().clamp(min=1e-12)
        V: Tensor = (c / (1 + c)).sqrt()[..., None] * U.mT
        if M.dim() == 3:
            return V
        left_out = eigenvalues.cumsum(0) <= (1 - self.share) * eigenvalues.sum()
        return V[int(left_out.sum()) :].contiguous()


def _held(G: Tensor, V: Tensor) -> Tensor:
    """Return G - (G V') V, with one V for all rows of G or one per row (batch norm)."""
    if V.dim() == 3:
        row = G[:, None]
        return (row - (row @ V.mT) @ V)[:, 0]
    return torch.addmm(G, G @ V.T, V, alpha=-1)
