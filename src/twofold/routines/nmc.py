"""Evaluation by the nearest class mean (Rebuffi et al., 2017, iCaRL, algorithm 1).

With mu_c, the mean over stored examples of class c of their features, each of length 1, and scaled
to length 1 itself, the prediction for x is

    argmin_c || phi(x) / ||phi(x)|| - mu_c ||  =  argmax_c <mu_c, phi(x)>

This is the network itself with mu_c as the weights of its last layer, so these weights are put in
place for an evaluation. A class of which nothing is stored is never predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from twofold.benchmarks import Batch
from twofold.component import require, require_at_most
from twofold.cost import Load
from twofold.errors import UserError
from twofold.models.features import features, head_of
from twofold.models.flat import FlatModel
from twofold.routines.base import Needs, Routine, Step


@dataclass
class Nmc(Routine, name="nmc"):
    """Evaluate by the nearest class mean of stored examples; the trained weights are, too.

    examples: of the memory, drawn for every evaluation, from which the means are computed.
    """

    examples: int = 500

    label = "NMC"
    needs = Needs.CURRENT
    context = ("_stored", "_values", "_head")

    def __post_init__(self) -> None:
        require(self.examples > 0, f"nmc's examples must be above 0, not {self.examples}")
        require_at_most(self, "examples")

    def start(self, net: FlatModel) -> None:
        self._head = head_of(net, self.name)
        if self._head.bias is None:
            raise UserError("nmc needs a bias in the network's last linear layer")
        self._values: Tensor | None = None

    def after_step(self, step: Step) -> None:
        # The means are computed when they are needed, since not every step is evaluated.
        self._stored, self._values = step.stored, None

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        if self._values is None:
            assert self._stored is not None
            self._values = self._classifier(net, self._stored(self.examples))
        with net.using(self._values):
            yield

    def _classifier(self, net: FlatModel, stored: Batch) -> Tensor:
        """Return the network's weights with the class means in the last layer."""
        means = class_means(features(net, stored.x, self._head, stored.tasks), stored.y)
        weight, bias = (net.slices[p] for p in (self._head.weight, self._head.bias))
        values = net.values.clone()
        # A class without a mean has the same score as a class with one, less 1.
        some = next(iter(means.values()))
        layer = [means.get(c, some) for c in range(self._head.out_features)]
        absent = [float(c not in means) for c in range(self._head.out_features)]
        values[weight] = torch.stack(layer).flatten()
        values[bias] = -values.new_tensor(absent)
        return values

    def evaluation_cost(self) -> Load:
        return Load(evaluated=self.examples)


def class_means(phi: Tensor, y: Tensor) -> dict[int, Tensor]:
    """Return the mean of normalised features of each class, normalised."""
    phi = F.normalize(phi, dim=1)
    return {c: F.normalize(phi[y == c].mean(0), dim=0) for c in y.unique().tolist()}
