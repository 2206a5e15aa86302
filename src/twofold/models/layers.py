"""Layers as products of inputs and weights: what old examples feed into each layer of a network."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from twofold.errors import UserError
from twofold.models.flat import FlatModel
from twofold.models.products import Matrix
from twofold.models.task_ids import chunks

CHUNK = 50  # images whose patches are in memory at once


@dataclass(frozen=True)
class Layer:
    """A layer as a product of inputs and weights.

    weight, bias: the place of its parameters in the network's vectors.
    """

    module: nn.Module
    weight: slice
    bias: slice | None
    outputs: int

    def rows(self, x: Tensor) -> Tensor:
        """Return Z, whose product with the parameters is an output (batch norm: a channel)."""
        module = self.module
        if isinstance(module, _BatchNorm):
            assert module.running_mean is not None
            assert module.running_var is not None
            scale = torch.rsqrt(module.running_var + module.eps)
            x = x.transpose(0, 1).flatten(1)  # a row per channel
            z = ((x - module.running_mean[:, None]) * scale[:, None])[:, :, None]
        elif isinstance(module, nn.Conv2d):
            patches = _patches(module, x)
            # The network's vectors hold convolution weights channels last.
            z = patches.unflatten(1, (module.in_channels, -1)).permute(0, 3, 2, 1).flatten(2)
            z = z.flatten(0, 1)
        else:
            z = x.flatten(0, -2)
        return z if self.bias is None else F.pad(z, (0, 1), value=1.0)

    def matrix(self, vector: Tensor) -> Matrix:
        """Return the layer's part of a vector, with a row per output, as views."""
        weight = vector[self.weight].view(self.outputs, -1)
        return Matrix(
            weight, None if self.bias is None else vector[self.bias].view(self.outputs, 1)
        )


def _patches(module: nn.Conv2d, x: Tensor) -> Tensor:
    """Return the patches of images that a convolution multiplies, a column per position."""
    padding, mode = module.padding, module.padding_mode
    if isinstance(padding, str) or mode != "zeros":
        sides = module._reversed_padding_repeated_twice  # in numbers, also for "same"
        x, padding = F.pad(x, sides, "constant" if mode == "zeros" else mode), (0, 0)
    return F.unfold(x, module.kernel_size, module.dilation, padding, module.stride)


def layers(net: FlatModel, routine: str) -> list[Layer]:
    """Return the linear layers, the 2D convolutions with one group, and batch norm.

    routine: the name of the routine that asks, for error messages.
    """
    all_layers = []
    for name, module in net.module.named_modules():
        if not isinstance(module, nn.Linear | nn.Conv2d | _BatchNorm) or module.weight is None:
            continue
        if isinstance(module, nn.Conv2d) and module.groups > 1:
            continue
        _check(name, module, net, routine)
        bias = net.slices[module.bias] if module.bias is not None else None
        all_layers.append(Layer(module, net.slices[module.weight], bias, len(module.weight)))
    return all_layers


def _check(
    name: str, module: nn.Linear | nn.Conv2d | _BatchNorm, net: FlatModel, routine: str
) -> None:
    """Raise UserError for batch norm without statistics, or a layer with computed parameters."""
    if isinstance(module, _BatchNorm) and module.running_mean is None:
        raise UserError(
            f"{routine} freezes batch norm, and the network's batch norm {name!r} has no running "
            "statistics to freeze it with"
        )
    for part in (module.weight, module.bias):
        if part is not None and part not in net.slices:
            raise UserError(
                f"{routine} needs layers whose parameters are weight and bias; the network's layer "
                f"{name!r} makes them of others, as weight norm does"
            )


class Inputs:
    """The inputs of a layer: Z while it has fewer rows than columns, then only Z'Z.

    For batch norm, which has two columns per channel, it is always Z'Z.
    """

    def __init__(self) -> None:
        self.count = 0
        self.rows: list[Tensor] = []
        self.total: Tensor | None = None

    def add(self, z: Tensor) -> None:
        self.count += z.shape[-2]
        self.rows.append(z)
        while self.rows and (self.count >= z.shape[-1] or z.dim() == 3):
            z = self.rows.pop()
            self.total = z.mT @ z if self.total is None else self.total + z.mT @ z

    def moment(self) -> Tensor:
        """Return the second moment Z'Z / n, for batch norm one per channel."""
        if self.total is not None:
            return self.total / self.count
        Z = torch.cat(self.rows)
        return Z.mT @ Z / self.count


@contextmanager
def watching(layers: list[Layer], most: float = math.inf) -> Iterator[dict[int, Inputs]]:
    """Collect the inputs of each layer, by its position, in all forward passes meanwhile.

    most: a layer that has this many rows of Z takes no more.
    """
    recorded: dict[int, Inputs] = defaultdict(Inputs)

    def watch(k: int, layer: Layer) -> RemovableHandle:
        def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if len(inputs[0]) and recorded[k].count < most:
                recorded[k].add(layer.rows(inputs[0]))

        return layer.module.register_forward_pre_hook(note)

    handles = [watch(k, layer) for k, layer in enumerate(layers)]
    try:
        yield recorded
    finally:
        for handle in handles:
            handle.remove()


def inputs_of(
    net: FlatModel, layers: list[Layer], old: tuple[Tensor, Tensor | None], most: float = math.inf
) -> dict[int, Inputs]:
    """Return the inputs of each layer, by its position, with batch norm frozen.

    old: old examples, and the ids of their tasks.
    most: a layer that has this many rows of Z takes no more.
    """
    frozen = net.frozen_batch_norm(affine=True)
    with torch.no_grad(), frozen, watching(layers, most) as recorded:
        for x, tasks in chunks(*old, CHUNK):
            net(x, tasks)
    return recorded


def unknown_parameters(net: FlatModel, known: list[Layer]) -> list[str]:
    """Return the names of trained parameters that belong to none of these layers."""
    places = {place.start for layer in known for place in (layer.weight, layer.bias) if place}
    return [
        name
        for name, p in net.module.named_parameters()
        if p.requires_grad and net.slices[p].start not in places
    ]
