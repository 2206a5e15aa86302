"""Layerwise proximal replay (Yoo et al., 2024): the activations of old data change only slowly.

For a layer l whose inputs on n old examples are the rows of Z_l, the proximal step

    argmin_W  <G_l, W - W_l> + 1/2 ||W - W_l||^2 + omega / (2 n) ||Z_l (W - W_l)'||^2

is a step along G_l with the preconditioner P_l = I + omega / n Z_l' Z_l:

    Gbar_l = G_l P_l^-1

A bias is the weight of a constant input of 1. The rows of a convolution are its patches. A batch
norm has one P per channel, for its two parameters scale and shift. In both, n also counts all
positions in an image (beta = 1 in the authors' code). Batch norm is frozen while Z is computed. Its
normalised input is divided by the standard deviation, whereas the authors' code divides by the
variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from twofold.component import require, require_at_most
from twofold.cost import Load
from twofold.models.flat import FlatModel
from twofold.models.layers import Inputs, inputs_of, layers
from twofold.models.products import Matrix, Products
from twofold.routines.base import Needs, Routine, Step

LARGEST = 100_000  # of omega: beyond it, P loses its identity matrix to single precision


@dataclass
class Lpr(Routine, name="lpr"):
    """Precondition the gradient of each layer by the layer's inputs on old examples.

    omega: how strongly the activations of old examples are held.
    every: after how many iterations Z is computed again; it always is at a task switch.
    examples: how many examples of the memory Z is computed from.
    """

    omega: float = 1.0
    every: int = 10
    examples: int = 256

    label = "LPR"
    needs = Needs.MEMORY
    context = ("_layers",)

    def __post_init__(self) -> None:
        require(self.omega > 0, f"lpr's omega must be above 0, not {self.omega}")
        require_at_most(self, "omega", most=LARGEST)
        require(self.every > 0, f"lpr's every must be above 0, not {self.every}")
        require(self.examples > 0, f"lpr's examples must be above 0, not {self.examples}")
        require_at_most(self, "every", "examples")

    def start(self, net: FlatModel) -> None:
        self._layers = layers(net, self.name)
        # By the layer's position: P^-1 (for batch norm, one per channel), or Q.
        self._maps: dict[int, Tensor] = {}

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if not self._prepared(step):
            return g
        direction = g.clone()
        for k in self._maps:
            self._precondition(k, "all", self._layers[k].matrix(direction))
        return direction

    def direct_products(self, products: Products, step: Step) -> Tensor | None:
        if not self._prepared(step):
            return None
        direction = torch.empty_like(step.net.values)
        parts = [layer.matrix(direction) for layer in self._layers]
        products.multiply_mapped(self._precondition, parts)
        return direction

    def cost(self, task: int) -> Load:
        """Return the load of computing each layer's inputs."""
        return Load(evaluated=self.examples / self.every) if task > 1 else Load()

    def _prepared(self, step: Step) -> bool:
        """Tell whether there are old examples, and compute P^-1 of every layer if it is time."""
        if step.memory is None:
            return False
        if not self._maps or (step.iteration - 1) % self.every == 0:
            old = step.memory(self.examples)
            recorded = inputs_of(step.net, self._layers, (old.x, old.tasks))
            self._maps = {k: _inverse(inputs, self.omega) for k, inputs in recorded.items()}
        step.mark(projected=1.0)
        return True

    def _precondition(self, k: int, role: str, rows: Matrix) -> None:
        """Multiply the rows by P^-1, in place."""
        inverse = self._maps[k]
        product = rows.along(inverse)
        if inverse.shape[-1] < inverse.shape[-2]:
            rows.subtract(product, inverse)
        else:
            rows.put(product)


def _inverse(inputs: Inputs, omega: float) -> Tensor:
    """Return P^-1 or, for a short Z, the Q with P^-1 = I - QQ', which is faster to apply.

    Q' = L^-1 A with A = (omega / n)^1/2 Z and L L' = I + A A'. If the result is not finite, as
    in a network that diverges, P = I.
    """
    if inputs.total is not None:
        identity = torch.eye(inputs.total.shape[-1], device=inputs.total.device)
        inverse = torch.linalg.inv_ex(identity + omega / inputs.count * inputs.total).inverse
        return torch.where(torch.isfinite(inverse).all(), inverse, identity)
    A = math.sqrt(omega / inputs.count) * torch.cat(inputs.rows)
    L = torch.linalg.cholesky_ex(torch.eye(len(A), device=A.device) + A @ A.T).L
    Q = torch.linalg.solve_triangular(L, A, upper=False).T.contiguous()
    return torch.where(torch.isfinite(L).all(), Q, 0)
