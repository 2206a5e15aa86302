"""Layerwise proximal replay (Yoo et al., 2024): old data's activations may change only slowly.

For a layer l whose inputs on n old examples are the rows of Z_l, the proximal step

    argmin_W  <G_l, W - W_l> + 1/2 ||W - W_l||^2 + omega / (2 n) ||Z_l (W - W_l)'||^2

is a step along G_l with a preconditioner, P_l = I + omega / n Z_l' Z_l:

    Gbar_l = G_l P_l^-1

A bias is a weight of the input 1. A convolution's rows are its patches, a batch norm has one P of
two parameters a channel, scale and shift; there n counts all places of an image, too (beta = 1 in
the authors' code). Batch norm is frozen while Z is made; its normalised input is divided by the
standard deviation, where the authors' code divides by the variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from twofold.component import require
from twofold.models.flat import FlatModel
from twofold.routines.base import Needs, Routine, Step

CHUNK = 50  # images whose patches are in memory at once


@dataclass
class Lpr(Routine, name="lpr"):
    """Preconditions each layer's gradient by what old examples feed into it.

    omega: how strongly their activations are held.
    every: after how many iterations Z is made anew; at a switch it always is.
    examples: how many of the memory's it is made of.
    """

    omega: float = 1.0
    every: int = 10
    examples: int = 256

    needs = Needs.MEMORY
    context = ("_layers",)

    def __post_init__(self) -> None:
        require(self.omega > 0, f"lpr's omega must be above 0, not {self.omega}")
        require(self.every > 0, f"lpr's every must be above 0, not {self.every}")
        require(self.examples > 0, f"lpr's examples must be above 0, not {self.examples}")

    def start(self, net: FlatModel) -> None:
        self._layers = layers(net)
        self._inverses: list[Tensor] = []

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.memory is None:
            return g
        if (step.iteration - 1) % self.every == 0:
            self._renew(step.net, step.memory(self.examples).x)
        step.mark(projected=1.0)
        direction = g.clone()
        for layer, inverse in zip(self._layers, self._inverses, strict=True):
            layer.precondition(direction, inverse)
        return direction

    def _renew(self, net: FlatModel, x: Tensor) -> None:
        """P^-1 of every layer, from what these images feed into it."""
        with torch.no_grad(), net.frozen_batch_norm(affine=True), _watching(self._layers) as seen:
            for chunk in x.split(CHUNK):
                net(chunk)
        self._inverses = [_inverse(self.omega * seen[layer]) for layer in self._layers]


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer that has a preconditioner, and where its parameters are in the network's vectors."""

    module: nn.Module
    weight: slice
    bias: slice | None
    outputs: int

    def rows(self, x: Tensor) -> Tensor:
        """Z: what each of its outputs (or of its channels, for batch norm) is a product with."""
        module = self.module
        if isinstance(module, _BatchNorm):
            x = x.transpose(0, 1).flatten(1)  # a row a channel
            assert module.running_mean is not None
            assert module.running_var is not None
            scale = torch.rsqrt(module.running_var + module.eps)
            z = ((x - module.running_mean[:, None]) * scale[:, None])[:, :, None]
        elif isinstance(module, nn.Conv2d):
            assert not isinstance(module.padding, str)
            patches = F.unfold(
                x, module.kernel_size, module.dilation, module.padding, module.stride
            )
            # The network's vectors hold convolution weights channels last.
            z = patches.unflatten(1, (module.in_channels, -1)).permute(0, 3, 2, 1).flatten(2)
            z = z.flatten(0, 1)
        else:
            z = x.flatten(0, -2)
        return z if self.bias is None else F.pad(z, (0, 1), value=1.0)

    def precondition(self, direction: Tensor, inverse: Tensor) -> None:
        """Gbar = G P^-1, in place."""
        weight = direction[self.weight].view(self.outputs, -1)
        if self.bias is None:
            weight.copy_(_product(weight, inverse))
            return
        bias = direction[self.bias].view(self.outputs, 1)
        changed = _product(torch.cat([weight, bias], 1), inverse)
        weight.copy_(changed[:, :-1])
        bias.copy_(changed[:, -1:])


def layers(net: FlatModel) -> list[Layer]:
    """The linear, convolutional and batch-norm layers; others are left as they are."""
    found = []
    for module in net.module.modules():
        if not isinstance(module, nn.Linear | nn.Conv2d | _BatchNorm) or module.weight is None:
            continue
        if isinstance(module, nn.Conv2d) and (
            module.groups > 1 or module.padding_mode != "zeros" or isinstance(module.padding, str)
        ):
            continue
        bias = net.slices[module.bias] if module.bias is not None else None
        found.append(Layer(module, net.slices[module.weight], bias, len(module.weight)))
    return found


@contextmanager
def _watching(layers: list[Layer]) -> Iterator[dict[Layer, Tensor]]:
    """Z'Z / n of each layer, over all that is forwarded meanwhile (in chunks of one size)."""
    sums: dict[Layer, Tensor] = {}
    counts: dict[Layer, int] = {}

    def hook(layer: Layer, x: Tensor) -> None:
        z = layer.rows(x)
        sums[layer] = sums.get(layer, 0) + z.mT @ z
        counts[layer] = counts.get(layer, 0) + z.shape[-2]

    handles = [
        layer.module.register_forward_pre_hook(
            lambda module, inputs, layer=layer: hook(layer, inputs[0])
        )
        for layer in layers
    ]
    seen: dict[Layer, Tensor] = {}
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
    seen.update({layer: total / counts[layer] for layer, total in sums.items()})


def _product(G: Tensor, inverse: Tensor) -> Tensor:
    """G P^-1; with one P a row where there is one a channel."""
    return G @ inverse if inverse.dim() == 2 else (G[:, None] @ inverse)[:, 0]


def _inverse(covariance: Tensor) -> Tensor:
    """(I + covariance)^-1; I where that is no number, as a network that diverges has it."""
    identity = torch.eye(covariance.shape[-1], device=covariance.device)
    inverse: Tensor = torch.linalg.inv_ex(identity + covariance).inverse
    return torch.where(torch.isfinite(inverse).all(), inverse, identity)
