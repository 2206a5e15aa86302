"""From loss terms to gradients: steps 2 and 3 of the paper's algorithms 2 and 3."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from twofold.benchmarks import Batch
from twofold.models import FlatModel
from twofold.objectives.base import Pass, cross_entropy


class ObjectiveGradient(NamedTuple):
    """g of the whole objective and, where asked for, g_old of its old-data loss alone."""

    g: Tensor
    old: Tensor | None
    # Of each role, the weighted mean of its terms' losses; and "total", the objective's value.
    losses: dict[str, Tensor]


def objective_gradient(net: FlatModel, passes: list[Pass], apart: bool) -> ObjectiveGradient:
    """g = sum of weight * gradient over all terms; with `apart`, g_old as well.

    Terms of a pass are forwarded together, so that new and old data share batch-norm statistics;
    to have g_old apart then takes a second backward pass through the shared graph. Without batch
    norm the terms are independent: each role is forwarded alone, and nothing is done twice.

    The result lives in `net.gradient` where there is one pass; copy it to keep it.
    """
    together = net.has_batch_norm or not apart
    g = old = None
    values: dict[str, Tensor] = {}
    weights: dict[str, float] = {}
    for term in itertools.chain(*passes):
        weights[term.role] = weights.get(term.role, 0.0) + term.weight
    for terms in passes:
        net.gradient.zero_()
        # Old first: g_old is read off halfway.
        old_terms, new_terms = ([t for t in terms if t.role == role] for role in ("old", "new"))
        groups = [old_terms + new_terms] if together else [old_terms, new_terms]
        for group in filter(None, groups):
            losses: dict[str, Tensor] = {}
            for term, logits in zip(group, _logits(net, group), strict=True):
                loss = term.weight * term.loss(logits)
                losses[term.role] = losses[term.role] + loss if term.role in losses else loss
            for role, loss in losses.items():
                values[role] = values[role] + loss.detach() if role in values else loss.detach()
            if apart and "old" in losses:
                _backward(losses.pop("old"), keep_graph=bool(losses))
                mean = net.gradient / weights["old"]
                old = mean if old is None else old.add_(mean)
            if losses:
                _backward(sum(losses.values(), torch.zeros_like(loss)))
        if len(passes) > 1:
            g = net.gradient.clone() if g is None else g.add_(net.gradient)
    means = {role: value / weights[role] for role, value in values.items()}
    means["total"] = sum(values.values(), torch.zeros_like(loss))
    return ObjectiveGradient(net.gradient if g is None else g, old, means)


def frozen_gradient(net: FlatModel, batches: list[Batch], affine: bool) -> tuple[Tensor, Tensor]:
    """The mean cross-entropy over the batches with batch norm frozen: its gradient, and itself.

    Frozen, an image's loss does not depend on the others, so batches may go one by one.
    """
    count = sum(len(batch.y) for batch in batches)
    total = torch.zeros((), device=net.values.device)
    net.gradient.zero_()
    with net.frozen_batch_norm(affine):
        for batch in batches:
            loss = cross_entropy(batch.y)(net(batch.x)) * (len(batch.y) / count)
            _backward(loss)
            total += loss.detach()
    return net.gradient, total


def _logits(net: FlatModel, terms: Pass) -> list[Tensor]:
    """The logits of each term's inputs, from one forward pass."""
    if len(terms) == 1:
        return [net(terms[0].x)]
    logits = net(torch.cat([term.x for term in terms]))
    return list(logits.split([len(term.x) for term in terms]))


def _backward(loss: Tensor, keep_graph: bool = False) -> None:
    loss.backward(retain_graph=keep_graph)
