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
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from twofold.component import require
from twofold.cost import Load
from twofold.errors import UserError
from twofold.models.flat import FlatModel
from twofold.routines.base import Needs, Routine, Step

CHUNK = 50  # images whose patches are in memory at once


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
        require(self.every > 0, f"lpr's every must be above 0, not {self.every}")
        require(self.examples > 0, f"lpr's examples must be above 0, not {self.examples}")

    def start(self, net: FlatModel) -> None:
        self._layers = layers(net)
        self._inverses: dict[int, Tensor] = {}  # by the layer's position

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.memory is None:
            return g
        if (step.iteration - 1) % self.every == 0:
            self._renew(step.net, step.memory(self.examples).x)
        step.mark(projected=1.0)
        direction = g.clone()
        for k, inverse in self._inverses.items():
            self._layers[k].precondition(direction, inverse)
        return direction

    def cost(self, task: int) -> Load:
        """Return the load of computing each layer's inputs."""
        return Load(evaluated=self.examples / self.every) if task > 1 else Load()

    def _renew(self, net: FlatModel, x: Tensor) -> None:
        """Compute P^-1 of every layer from its inputs on these images."""
        with torch.no_grad(), net.frozen_batch_norm(affine=True), _watching(self._layers) as seen:
            for chunk in x.split(CHUNK):
                net(chunk)
        self._inverses = {k: inputs.inverse(self.omega) for k, inputs in seen.items()}


@dataclass(frozen=True)
class Layer:
    """A layer with a preconditioner, and the place of its parameters in the network's vectors."""

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
        """Replace the layer's part G of the direction by Gbar = G P^-1, in place."""
        weight = direction[self.weight].view(self.outputs, -1)
        if self.bias is None:
            weight.copy_(_product(weight, inverse))
            return
        bias = direction[self.bias].view(self.outputs, 1)
        changed = _product(torch.cat([weight, bias], 1), inverse)
        weight.copy_(changed[:, :-1])
        bias.copy_(changed[:, -1:])


def layers(net: FlatModel) -> list[Layer]:
    """Return the linear, convolutional and batch-norm layers; others have no preconditioner."""
    found = []
    for name, module in net.module.named_modules():
        if not isinstance(module, nn.Linear | nn.Conv2d | _BatchNorm) or module.weight is None:
            continue
        if isinstance(module, nn.Conv2d) and (
            module.groups > 1 or module.padding_mode != "zeros" or isinstance(module.padding, str)
        ):
            continue
        _check(name, module, net)
        bias = net.slices[module.bias] if module.bias is not None else None
        found.append(Layer(module, net.slices[module.weight], bias, len(module.weight)))
    return found


def _check(name: str, module: nn.Linear | nn.Conv2d | _BatchNorm, net: FlatModel) -> None:
    """Raise UserError for batch norm without statistics, or a layer with computed parameters."""
    if isinstance(module, _BatchNorm) and module.running_mean is None:
        raise UserError(
            f"lpr freezes batch norm, and the network's batch norm {name!r} has no running "
            "statistics to freeze it with"
        )
    for part in (module.weight, module.bias):
        if part is not None and part not in net.slices:
            raise UserError(
                f"lpr needs layers whose parameters are weight and bias; the network's layer "
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

    def inverse(self, omega: float) -> Tensor:
        """Return P^-1 or, for a short Z, the V with P^-1 = I - V'V, which is faster to apply.

        V = L^-1 A with A = (omega / n)^1/2 Z and L L' = I + A A'. If the result is not finite, as
        in a network that diverges, P = I.
        """
        if self.total is not None:
            identity = torch.eye(self.total.shape[-1], device=self.total.device)
            inverse = torch.linalg.inv_ex(identity + omega / self.count * self.total).inverse
            return torch.where(torch.isfinite(inverse).all(), inverse, identity)
        A = math.sqrt(omega / self.count) * torch.cat(self.rows)
        L = torch.linalg.cholesky_ex(torch.eye(len(A), device=A.device) + A @ A.T).L
        V = torch.linalg.solve_triangular(L, A, upper=False)
        return torch.where(torch.isfinite(V).all(), V, 0)


def _product(G: Tensor, inverse: Tensor) -> Tensor:
    """Return G P^-1, given P^-1, one P^-1 per row (for batch norm, per channel), or V."""
    if inverse.dim() == 3:
        return (G[:, None] @ inverse)[:, 0]
    if len(inverse) < inverse.shape[1]:
        return torch.addmm(G, G @ inverse.T, inverse, alpha=-1)
    return G @ inverse


@contextmanager
def _watching(layers: list[Layer]) -> Iterator[dict[int, Inputs]]:
    """Collect the inputs of each layer, by its position, in all forward passes meanwhile."""
    seen: dict[int, Inputs] = defaultdict(Inputs)

    def watch(k: int, layer: Layer) -> RemovableHandle:
        def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            seen[k].add(layer.rows(inputs[0]))

        return layer.module.register_forward_pre_hook(note)

    handles = [watch(k, layer) for k, layer in enumerate(layers)]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
