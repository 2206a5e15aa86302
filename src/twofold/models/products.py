"""Gradients of linear layers as products that are not multiplied out yet.

The gradient of a layer is G = D'Z. The rows of Z are the layer's inputs, with a 1 for the bias, and
those of D the derivatives of the loss by the layer's outputs, a row per example. A routine that
follows G P instead can map the inputs: G P = D'(Z P). With fewer examples than outputs this takes
less time, and G itself need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Matrix(NamedTuple):
    """A matrix with a column per input of a layer. The last column, of the bias, lies apart.

    It is a layer's gradient, with a row per output, or the inputs of a layer.
    """

    weight: Tensor
    bias: Tensor | None  # one column

    def joined(self) -> Tensor:
        """Return the matrix as one tensor."""
        return self.weight if self.bias is None else torch.cat([self.weight, self.bias], 1)

    def put(self, matrix: Tensor) -> None:
        """Replace the matrix, in place."""
        if self.bias is None:
            self.weight.copy_(matrix)
        else:
            self.weight.copy_(matrix[:, :-1])
            self.bias.copy_(matrix[:, -1:])

    def scale(self, factor: float) -> None:
        """Multiply by a number, in place."""
        self.weight.mul_(factor)
        if self.bias is not None:
            self.bias.mul_(factor)

    def along(self, Q: Tensor) -> Tensor:
        """Return the product with Q, which is one for all rows or, for batch norm, one per row."""
        if Q.dim() == 3:
            return (self.joined()[:, None] @ Q)[:, 0]
        if self.bias is None:  # a copy that joins the two would take as long again
            return self.weight @ Q
        return (self.weight @ Q[:-1]).addmm_(self.bias, Q[-1:])

    def subtract(self, C: Tensor, Q: Tensor) -> None:
        """Subtract C Q', in place."""
        if Q.dim() == 3:
            self.put(self.joined() - (C[:, None] @ Q.mT)[:, 0])
        elif self.bias is None:
            self.weight.addmm_(C, Q.T, alpha=-1)
        else:
            self.weight.addmm_(C, Q[:-1].T, alpha=-1)
            self.bias.addmm_(C, Q[-1:].T, alpha=-1)


# Maps the rows of a matrix in place, given the position of the layer and the role of the data.
Map = Callable[[int, str, Matrix], None]


class Product(NamedTuple):
    """The factors of the gradient of one layer."""

    layer: nn.Linear
    x: Tensor  # Z, without the column of ones
    d: Tensor  # D

    def multiply(self, add: bool = False) -> None:
        """Write the gradient to that of the layer's parameters, or add it."""
        weight, bias = self.layer.weight.grad, self.layer.bias.grad
        assert weight is not None
        assert bias is not None
        if add:
            weight.add_(self.d.t() @ self.x)
            bias.add_(self.d.sum(0))
        else:
            torch.mm(self.d.t(), self.x, out=weight)
            torch.sum(self.d, 0, out=bias)


@dataclass(frozen=True)
class Products:
    """The factors of the gradients of all layers, from one forward and backward pass.

    roles: the rows of `new` and of `old` data; or `all` rows.
    """

    layers: Sequence[Product]
    roles: Mapping[str, slice]

    @torch.no_grad()
    def multiply(self) -> None:
        """Write the gradients to those of the parameters."""
        for product in self.layers:
            product.multiply()

    @torch.no_grad()
    def multiply_mapped(self, change: Map, parts: Sequence[Matrix]) -> None:
        """Write the gradients with mapped rows to these parts of a vector, one per layer."""
        for k, ((_, x, d), part) in enumerate(zip(self.layers, parts, strict=True)):
            ones = x.new_ones(len(x), 1)
            if len(x) < d.shape[1]:
                z = x.clone()
                for role, rows in self.roles.items():
                    change(k, role, Matrix(z[rows], ones[rows]))
                assert part.bias is not None
                torch.mm(d.t(), z, out=part.weight)
                torch.mm(d.t(), ones, out=part.bias)
            else:  # a gradient has fewer rows than the inputs
                total = x.new_zeros(d.shape[1], x.shape[1] + 1)
                for role, rows in self.roles.items():
                    G = Matrix(d[rows].t() @ x[rows], d[rows].t() @ ones[rows])
                    change(k, role, G)
                    total += G.joined()
                part.put(total)
