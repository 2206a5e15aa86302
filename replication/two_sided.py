"""A plugin that was tried and not kept: a proximal step with a metric on both sides of a layer.

    d = (I + omega A x B)^-1 g

per linear layer. A is the second moment of the layer's inputs on old examples, as in LPR. B is the
metric that the logits of old examples induce on the layer's outputs: with `metric=logits`, the mean
of J'J for the Jacobian J of the logits; with `metric=softmax`, the mean of J'FJ for the Fisher
information F of the softmax. Both are estimated with one random vector per example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from twofold import Needs, Routine, Step
from twofold.models.flat import FlatModel
from twofold.models.layers import layers


@dataclass
class TwoSided(Routine, name="two-sided"):
    """Precondition each layer by old inputs and by what the logits make of its outputs."""

    omega: float = 10.0
    metric: Literal["logits", "softmax"] = "logits"
    every: int = 10
    examples: int = 256

    needs = Needs.MEMORY
    context = ("_layers",)

    def start(self, net: FlatModel) -> None:
        self._layers = layers(net, self.name)
        self._bases: list[Tensor] = []  # eigenvectors of A and B and the products of eigenvalues

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.memory is None:
            return g
        if (step.iteration - 1) % self.every == 0:
            seed = int(step.random().integers(2**31))
            self._renew(step.net, step.memory(self.examples).x, seed)
        step.mark(projected=1.0)
        direction = g.clone()
        for k, layer in enumerate(self._layers):
            UA, UB, c = self._bases[3 * k : 3 * k + 3]
            G = UB.T @ layer.matrix(g).joined() @ UA
            layer.matrix(direction).put(UB @ (G / (1 + self.omega * c)) @ UA.T)
        return direction

    def _renew(self, net: FlatModel, x: Tensor, seed: int) -> None:
        inputs, outputs, handles = {}, {}, []
        for k, layer in enumerate(self._layers):

            def note(module: object, given: tuple[Tensor, ...], made: Tensor, k: int = k) -> None:
                inputs[k], outputs[k] = given[0].detach(), made

            handles.append(layer.module.register_forward_hook(note))
        logits = net(x)
        for handle in handles:
            handle.remove()
        random = torch.Generator().manual_seed(seed)
        if self.metric == "logits":
            vectors = torch.randint(2, logits.shape, generator=random).float() * 2 - 1
        else:
            p = logits.detach().softmax(1)
            drawn = torch.multinomial(p, 1, generator=random)[:, 0]
            vectors = p - F.one_hot(drawn, p.shape[1])
        matrices = [outputs[k] for k in range(len(self._layers))]
        gradients = torch.autograd.grad((logits * vectors).sum(), matrices)
        self._bases = []
        for k, layer in enumerate(self._layers):
            Z, D = layer.rows(inputs[k]), gradients[k]
            a, UA = torch.linalg.eigh(Z.T @ Z / len(Z))
            b, UB = torch.linalg.eigh(D.T @ D / len(D))
            self._bases += [UA, UB, b.clamp(min=0)[:, None] * a.clamp(min=0)]
