"""Networks of linear layers and ReLUs, whose gradients are computed without autograd's graph.

The products are the same as autograd's, with the same operands in the same order. They are written
straight to their place. Autograd would write them to new memory and add them to zeros, which takes
as long as the products of a small batch. Gradients are bitwise equal to autograd's, except that
some processors round a product differently if its place is not aligned to 16 bytes, as in layers of
odd sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from twofold.models.products import Product, Products


class Dense:
    """The layers of a network such as `mlp`, for one forward and backward pass at a time."""

    def __init__(self, module: nn.Module, layers: list[nn.Linear], flattens: bool) -> None:
        self._layers, self._flattens = layers, flattens
        self._modules, self._parameters = list(module.modules()), list(module.parameters())
        self._inputs: list[Tensor] = []  # of the layers, in the last forward pass
        self._logits = torch.empty(0)
        self._empty = True

    @classmethod
    def read(cls, module: nn.Module) -> Dense | None:
        """Return the layers of a network; None for one that is not linear layers and ReLUs alone.

        Subclasses may do anything, so only the types themselves count.
        """
        if type(module) is not nn.Sequential:
            return None
        first, *others = module or [None]
        flattens = type(first) is nn.Flatten and (first.start_dim, first.end_dim) == (1, -1)
        parts = others if flattens else [first, *others]
        layers = [part for part in parts[::2] if type(part) is nn.Linear and part.bias is not None]
        relus = [part for part in parts[1::2] if type(part) is nn.ReLU]
        whole = len(layers) + len(relus) == len(parts) == 2 * len(layers) - 1
        shared = len(list(module.parameters())) < 2 * len(layers)
        return cls(module, layers, flattens) if whole and not shared else None

    def computes(self, x: Tensor) -> bool:
        """Tell whether autograd would do nothing else now, such as calling a user's hooks."""
        return (
            (self._flattens or x.dim() == 2)
            and x.device.type == "cpu"
            and x.dtype == torch.float32
            and not x.requires_grad
            and not any(map(_hooked, self._modules))
            and all(p.requires_grad and not p._backward_hooks for p in self._parameters)
        )

    def clear(self) -> None:
        """Let the next backward pass replace the gradients, instead of adding to them."""
        self._empty = True

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """Return the logits as a leaf, whose own gradient `backward` starts from."""
        x = x.flatten(1)
        self._inputs = []
        for layer in self._layers:
            if self._inputs:
                x = x.relu_()
            self._inputs.append(x)
            x = torch.addmm(layer.bias, x, layer.weight.t())
        self._logits = x.requires_grad_()
        return self._logits

    @torch.no_grad()
    def backward(self) -> None:
        """Compute the gradients of all parameters from that of the logits."""
        for product in self._products():
            product.multiply(add=not self._empty)
        self._empty = False

    @torch.no_grad()
    def products(self, roles: dict[str, slice]) -> Products:
        """Return the same gradients by their factors. The rows have these roles."""
        return Products([*self._products()][::-1], roles)

    def _products(self) -> Iterator[Product]:
        """Compute the factors layer by layer, from the last to the first."""
        d = self._logits.grad
        for k in reversed(range(len(self._layers))):
            assert d is not None
            layer, x = self._layers[k], self._inputs[k]
            yield Product(layer, x, d)
            if k:
                d = d @ layer.weight
                torch.ops.aten.threshold_backward.grad_input(d, x, 0, grad_input=d)
        self._inputs, self._logits = [], torch.empty(0)


def _hooked(module: nn.Module) -> bool:
    """Tell whether calling a module does more than its `forward`."""
    return bool(
        module._compiled_call_impl
        or module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
