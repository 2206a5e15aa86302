"""The gradients of loss terms: steps 2 and 3 of the paper's algorithms 2 and 3."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from twofold.benchmarks import Batch
from twofold.models import FlatModel
from twofold.models.activations import activations
from twofold.models.dense import Dense
from twofold.models.products import Products
from twofold.objectives.base import Pass, cross_entropy, is_cross_entropy
from twofold.terms.base import Addition, Forward


class ObjectiveGradient(NamedTuple):
    """The gradient g of the objective and, on request, g_old of its loss on old data."""

    g: Tensor
    old: Tensor | None
    # The weighted mean of the losses per role, and the value of the objective as "total".
    losses: dict[str, Tensor]


class FactoredGradient(NamedTuple):
    """The same with the factors of g, which include those of g_old."""

    g: Products
    old: None
    losses: dict[str, Tensor]


def objective_gradient(
    net: FlatModel, passes: list[Pass], apart: bool, additions: Sequence[Addition] = ()
) -> ObjectiveGradient:
    """Return g, the sum of weight * gradient over all terms, and with `apart` also g_old.

    The terms of a pass are forwarded together, so that new and old data share batch-norm
    statistics. A separate g_old then takes a backward pass of its own through the shared graph, and
    g is bitwise the same as without it. Without batch norm the terms are independent, so each role
    is forwarded alone and nothing is computed twice.

    additions: terms that are added to the objective. They count in g and not in g_old.

    With a single pass, the result is stored in `net.gradient`. Copy it to keep it.
    """
    together = net.has_batch_norm or not apart
    g = old = None
    extra = torch.zeros((), device=net.device)
    values: dict[str, Tensor] = {}
    weights: dict[str, float] = {}
    examples = 0
    for term in itertools.chain(*passes):
        examples += len(term.x)
        weights[term.role] = weights.get(term.role, 0.0) + term.weight
    for terms in passes:
        by_hand = _by_hand(net, terms) if not additions else None
        _clear(net, by_hand)
        # Old terms come first, so that g_old can be read before new terms are added.
        old_terms, new_terms = ([t for t in terms if t.role == role] for role in ("old", "new"))
        groups = [old_terms + new_terms] if together else [old_terms, new_terms]
        for group in filter(None, groups):
            outputs, added = _forwarded(net, group, examples, additions, by_hand)
            losses = _losses(group, outputs)
            for role, loss in losses.items():
                values[role] = values[role] + loss.detach() if role in values else loss.detach()
            if apart and "old" in losses:
                shared = len(losses) > 1 or added is not None
                _backward(losses["old"], by_hand, keep_graph=shared)
                mean = net.gradient / weights["old"]
                old = mean if old is None else old.add_(mean)
                if not shared:
                    continue
                net.gradient.zero_()  # g is summed in the same order as without g_old
            if added is not None:
                losses["added"] = added
                extra = extra + added.detach()
            _backward(sum(losses.values(), torch.zeros_like(loss)), by_hand)
        if len(passes) > 1:
            g = net.gradient.clone() if g is None else g.add_(net.gradient)
    means = {role: value / weights[role] for role, value in values.items()}
    g = net.gradient if g is None else g
    for addition in additions:
        pulled = addition.pull(net.values)
        if pulled is not None:
            extra = extra + pulled[0]
            g.add_(pulled[1])
    means["total"] = sum(values.values(), torch.zeros_like(loss))
    if additions:
        means["total"] = means["total"] + extra
    return ObjectiveGradient(g, old, means)


def factored_gradient(
    net: FlatModel, passes: list[Pass], apart: bool, additions: Sequence[Addition] = ()
) -> ObjectiveGradient | FactoredGradient:
    """Return g by its factors, if the network and the losses allow it, or else as it is.

    apart: whether the factors are divided into those of new and of old data.
    """
    by_hand = _by_hand(net, passes[0]) if len(passes) == 1 and not additions else None
    if by_hand is None:
        return objective_gradient(net, passes, apart, additions)
    old, new = ([t for t in passes[0] if t.role == role] for role in ("old", "new"))
    losses = _losses(old + new, _logits(net, old + new, by_hand)[0])
    total = sum(losses.values(), torch.zeros((), device=net.device))
    total.backward()
    weights = {"old": sum(t.weight for t in old), "new": sum(t.weight for t in new)}
    means = {role: loss.detach() / weights[role] for role, loss in losses.items()}
    means["total"] = total.detach()
    count = sum(len(term.x) for term in old)
    divided = {"old": slice(count), "new": slice(count, None)} if old else {"new": slice(None)}
    roles = divided if apart else {"all": slice(None)}
    return FactoredGradient(by_hand.products(roles), None, means)


def _losses(terms: Pass, outputs: list[Tensor]) -> dict[str, Tensor]:
    """Return the sum of the weighted losses per role."""
    losses: dict[str, Tensor] = {}
    for term, logits in zip(terms, outputs, strict=True):
        loss = term.weight * term.loss(logits)
        losses[term.role] = losses[term.role] + loss if term.role in losses else loss
    return losses


def _forwarded(
    net: FlatModel,
    terms: Pass,
    examples: int,
    additions: Sequence[Addition],
    by_hand: Dense | None,
) -> tuple[list[Tensor], Tensor | None]:
    """Return the logits of each term's inputs, and what additions add to the loss of the pass."""
    if not additions:
        return _logits(net, terms, by_hand)[0], None
    with activations(net, any(each.watches for each in additions)) as seen:
        outputs, logits = _logits(net, terms)
    x = torch.cat([term.x for term in terms])
    forward = Forward(x, logits, seen, len(x) / examples, _tasks(terms))
    losses = [loss for loss in (each.loss(forward) for each in additions) if loss is not None]
    if not losses:
        return outputs, None
    return outputs, forward.share * sum(losses[1:], losses[0])


def old_weight(passes: list[Pass]) -> float:
    """Return the weight of g_old in g: the sum of the weights of terms on old data."""
    return sum((t.weight for t in itertools.chain(*passes) if t.role == "old"), 0.0)


def frozen_gradient(net: FlatModel, batches: list[Batch], affine: bool) -> tuple[Tensor, Tensor]:
    """Return the gradient and the value of the mean cross-entropy with batch norm frozen.

    With frozen batch norm, the loss of an image does not depend on other images, so batches can be
    processed one by one.
    """
    count = sum(len(batch.y) for batch in batches)
    total = torch.zeros((), device=net.values.device)
    by_hand = _dense(net, [batch.x for batch in batches])
    _clear(net, by_hand)
    with net.frozen_batch_norm(affine):
        for batch in batches:
            logits = net.among_own(_all_logits(net, batch.x, batch.tasks, by_hand), batch.tasks)
            loss = cross_entropy(batch.y)(logits) * (len(batch.y) / count)
            _backward(loss, by_hand)
            total += loss.detach()
    return net.gradient, total


def _logits(
    net: FlatModel, terms: Pass, by_hand: Dense | None = None
) -> tuple[list[Tensor], Tensor]:
    """Return the logits of each term's inputs, and of all outputs, from one forward pass."""
    x, tasks = _joined([term.x for term in terms]), _tasks(terms)
    logits = _all_logits(net, x, tasks, by_hand)
    own = net.among_own(logits, tasks)
    if len(terms) == 1:
        return [own], logits
    return list(own.split([len(term.x) for term in terms])), logits


def _tasks(terms: Pass) -> Tensor | None:
    """Return the task ids of a pass; None unless all terms have them."""
    ids = [term.tasks for term in terms if term.tasks is not None]
    return _joined(ids) if len(ids) == len(terms) else None


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _by_hand(net: FlatModel, terms: Pass) -> Dense | None:
    """Return the layers to differentiate without a graph, which no other loss may look into."""
    plain = all(is_cross_entropy(term.loss) for term in terms)
    return _dense(net, [term.x for term in terms]) if plain else None


def _dense(net: FlatModel, inputs: list[Tensor]) -> Dense | None:
    dense = net.dense
    return dense if dense is not None and all(map(dense.computes, inputs)) else None


def _all_logits(net: FlatModel, x: Tensor, tasks: Tensor | None, by_hand: Dense | None) -> Tensor:
    return net.all_logits(x, tasks) if by_hand is None else by_hand.logits(x)


def _clear(net: FlatModel, by_hand: Dense | None) -> None:
    if by_hand is None:
        net.gradient.zero_()
    else:
        by_hand.clear()


def _backward(loss: Tensor, by_hand: Dense | None, keep_graph: bool = False) -> None:
    loss.backward(retain_graph=keep_graph)
    if by_hand is not None:
        by_hand.backward()
