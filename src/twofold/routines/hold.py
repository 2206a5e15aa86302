"""Hold: the gradient of new data is held where old data would notice it.

The objective's gradient has a part of new data and a part of old data, g = g_n + g_o. Both take
proximal steps that keep each layer's outputs on old data, as LPR does, but not equally strongly:

    d = gain g_n P(omega)^-1 + g_o P(damping)^-1,   P(s) = I + s / m M

per layer, where M = Z'Z / n is the second moment of the layer's inputs on n old examples, and m is
the mean of its eigenvalues, so that strengths have no unit. New data are held strongly. Old data
know where their outputs should go, so that their part is damped only as far as the step size
requires. Only the leading eigenvectors of M, which carry a `share` of its trace, are held. With
these eigenvectors as the columns of U, and their eigenvalues divided by m in a,

    g P(s)^-1 = g - (g U diag(s a / (1 + s a))) U'

What is held hardly moves, so M is computed rarely. docs/closing-the-gap.md derives the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twofold.benchmarks import Batch
from twofold.component import require, require_at_most
from twofold.cost import Load
from twofold.errors import UserError
from twofold.models.flat import FlatModel
from twofold.models.layers import inputs_of, layers, unknown_parameters
from twofold.models.products import Matrix, Products
from twofold.routines.base import Needs, Routine, Step

LEAST = 0.1  # old data are not damped where less than this share would be held
ROWS = 20_000  # of Z in a layer: enough for a second moment, and a convolution has many per image


@dataclass
class Hold(Routine, name="hold"):
    """Hold the gradient of new data along the inputs of old data, layer by layer.

    omega: how strongly the gradient of new data is held; 0 for not at all.
    gain: the factor of the gradient of new data where nothing holds it.
    damping: how strongly the gradient of old data is held.
    share: the share of old data's second moment that is held, by its leading directions.
    every: after how many iterations M is computed again; it always is at a task switch.
    examples: how many examples of the memory M is computed from.
    """

    omega: float = 16.0
    gain: float = 2.0
    damping: float = 0.05
    share: float = 0.95
    every: int = 1000
    examples: int = 1000

    label = "Hold"
    needs = Needs.OLD | Needs.MEMORY
    context = ("_layers", "_new")

    def __post_init__(self) -> None:
        for name in ("omega", "damping"):
            value = getattr(self, name)
            require(value >= 0, f"hold's {name} must be at least 0, not {value}")
        require(self.gain > 0, f"hold's gain must be above 0, not {self.gain}")
        require(
            0 < self.share <= 1, f"hold's share must be above 0 and at most 1, not {self.share}"
        )
        require(self.every > 0, f"hold's every must be above 0, not {self.every}")
        require(self.examples > 0, f"hold's examples must be above 0, not {self.examples}")
        require_at_most(self, "omega", "gain", "damping", "every", "examples")

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
        self._new = torch.empty_like(net.values)  # g_n, in memory that is used again
        unknown = unknown_parameters(net, self._layers)
        if unknown:
            raise UserError(
                f"hold knows linear layers, 2D convolutions with one group and batch norm; the "
                f"network's {unknown[0]!r} belongs to a different layer"
            )
        # U, and the shares of both parts that are held along its columns, by the layer's position.
        self._leading: dict[int, Tensor] = {}
        self._strong: dict[int, Tensor] = {}
        self._weak: dict[int, Tensor] = {}

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.memory is None or step.old is None:
            return g
        if step.old_weight is None:
            raise UserError(
                "hold needs the weight of old data in the loss: let how.old return (loss, weight)"
            )
        self._prepare(step, step.memory)
        new = torch.add(g, step.old, alpha=-step.old_weight, out=self._new)
        direction = torch.add(g, new, alpha=self.gain - 1)  # gain g_n + g_o
        for k, U in self._leading.items():
            layer, strong, weak = self._layers[k], self._strong[k], self._weak[k]
            held = layer.matrix(new).along(U).mul_(self.gain * strong)
            count = weak.shape[-1]
            if count:
                along_old = layer.matrix(step.old).along(U[..., -count:])
                held[:, -count:].addcmul_(along_old, step.old_weight * weak)
            layer.matrix(direction).subtract(held, U)
        return direction

    def direct_products(self, products: Products, step: Step) -> Tensor | None:
        if step.memory is None or (step.old is None and "old" not in products.roles):
            return None
        self._prepare(step, step.memory)
        direction = torch.empty_like(step.net.values)
        parts = [layer.matrix(direction) for layer in self._layers]
        products.multiply_mapped(self._hold, parts)
        return direction

    def _hold(self, k: int, role: str, rows: Matrix) -> None:
        """Multiply rows of new data by gain P(omega)^-1, and of old data by P(damping)^-1."""
        gain, share = (1.0, self._weak[k]) if role == "old" else (self.gain, self._strong[k])
        U = self._leading[k]
        U = U[:, U.shape[1] - len(share) :]
        held = rows.along(U).mul_(gain * share)
        rows.scale(gain)
        rows.subtract(held, U)

    def cost(self, task: int) -> Load:
        """Return the load of computing each layer's inputs."""
        return Load(evaluated=self.examples / self.every) if task > 1 else Load()

    def _prepare(self, step: Step, memory: Callable[[int], Batch]) -> None:
        """Compute the directions of every layer, if it is time."""
        step.mark(projected=1.0)
        if self._leading and (step.iteration - 1) % self.every:
            return
        old = memory(self.examples)
        if not len(old.x):
            raise UserError("hold needs examples in the memory, and there are none")
        for k, inputs in inputs_of(step.net, self._layers, (old.x, old.tasks), ROWS).items():
            self._leading[k], a = leading(inputs.moment(), self.share)
            self._strong[k] = _share_held(self.omega * a)
            weak = _share_held(self.damping * a)
            self._weak[k] = weak if weak.dim() == 2 else weak[weak >= LEAST]  # ascending


def leading(M: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return U and a of the leading eigenvectors of M; of all of them if there is an M per channel.

    In a network that diverges, a is 0 and nothing is held.
    """
    if not torch.isfinite(M).all():
        return torch.zeros_like(M), torch.zeros_like(M[..., 0])
    eigenvalues, U = torch.linalg.eigh(M)  # in ascending order
    eigenvalues = eigenvalues.clamp(min=0)
    a = eigenvalues / eigenvalues.mean().clamp(min=1e-12)
    if M.dim() == 3:
        return U.contiguous(), a
    first = int((eigenvalues.cumsum(0) <= (1 - share) * eigenvalues.sum()).sum())
    return U[:, first:].contiguous(), a[first:]


def _share_held(strength: Tensor) -> Tensor:
    return strength / (1 + strength)
