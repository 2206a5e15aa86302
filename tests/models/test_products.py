"""Gradients by their factors, against autograd in double precision and dense linear algebra."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.benchmarks import Batch
from twofold.gradients import FactoredGradient, factored_gradient, objective_gradient
from twofold.models import FlatModel, mlp
from twofold.models.layers import layers
from twofold.models.products import Matrix, Products
from twofold.objectives import Draw
from twofold.objectives.base import Pass
from twofold.objectives.er import Er
from twofold.terms.decay import Decay

INPUTS, HIDDEN, CLASSES = 16, 30, 5


def batch(count: int) -> Batch:
    x = torch.randn(count, INPUTS)
    return Batch(x, torch.randint(CLASSES, (count,)), torch.arange(count))


def network() -> FlatModel:
    return FlatModel(mlp(CLASSES, INPUTS, HIDDEN))


def passes(new: Batch, old: Batch | None) -> list[Pass]:
    return Er().passes(Draw(3, 1, new, old))


def matrices(net: FlatModel, weight: float, data: Batch) -> list[Tensor]:
    """The gradients of all layers, with their biases, by autograd in double precision."""
    module = copy.deepcopy(net.module).double()
    loss = weight * F.cross_entropy(module(data.x.double()), data.y)
    gradients = iter(torch.autograd.grad(loss, list(module.parameters())))
    return [torch.cat([G, next(gradients)[:, None]], 1) for G in gradients]


def maps() -> dict[tuple[int, str], Tensor]:
    """A matrix per layer and role, far from symmetric."""
    sizes = [INPUTS + 1, HIDDEN + 1, HIDDEN + 1]
    return {
        (k, role): torch.randn(size, size) / size
        for k, size in enumerate(sizes)
        for role in ("old", "new", "all")
    }


def mapped(net: FlatModel, products: Products, by: dict[tuple[int, str], Tensor]) -> list[Tensor]:
    vector = torch.full_like(net.values, torch.nan)

    def change(k: int, role: str, rows: Matrix) -> None:
        rows.put(rows.along(by[k, role]))

    parts = [layer.matrix(vector) for layer in layers(net, "test")]
    products.multiply_mapped(change, parts)
    return [part.joined().double() for part in parts]


# Fewer examples than hidden units, in all layers or except for the last; and more.
@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("apart", [False, True])
def test_mapped_gradients_equal_a_product_with_the_gradient(count, apart):
    torch.manual_seed(count)
    net, new, old, by = network(), batch(count), batch(count + 1), maps()
    found = factored_gradient(net, passes(new, old), apart)
    assert isinstance(found, FactoredGradient)
    assert list(found.g.roles) == (["old", "new"] if apart else ["all"])
    of_new, of_old = matrices(net, 1 / 3, new), matrices(net, 2 / 3, old)
    for k, result in enumerate(mapped(net, found.g, by)):
        P, Q = (by[k, role].double() for role in (("new", "old") if apart else ("all", "all")))
        torch.testing.assert_close(result, of_new[k] @ P + of_old[k] @ Q, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("replays", [False, True])
def test_the_gradient_and_the_losses_are_bitwise_those_without_factors(replays):
    torch.manual_seed(0)
    net, terms = network(), passes(batch(10), batch(7) if replays else None)
    g, _, losses = objective_gradient(net, terms, apart=False)
    g = g.clone()
    for apart in (False, True):
        found = factored_gradient(net, terms, apart)
        assert isinstance(found, FactoredGradient)
        net.gradient.fill_(torch.nan)
        found.g.multiply()
        assert torch.equal(net.gradient, g)
        assert found.losses.keys() == losses.keys()
        assert all(torch.equal(found.losses[role], value) for role, value in losses.items())


def test_factors_stay_as_they_are():
    """A step's gradient is computed after its direction, if someone asks for it."""
    torch.manual_seed(0)
    net, by = network(), maps()
    found = factored_gradient(net, passes(batch(10), batch(7)), apart=True)
    assert isinstance(found, FactoredGradient)
    found.g.multiply()
    g = net.gradient.clone()
    mapped(net, found.g, by)
    net.values.mul_(2)
    objective_gradient(net, passes(batch(3), None), apart=False)
    found.g.multiply()
    assert torch.equal(net.gradient, g)


@pytest.mark.parametrize("why", ["network", "loss", "passes", "term"])
def test_otherwise_the_gradient_is_as_it_was(why):
    torch.manual_seed(0)
    net, terms, additions = network(), passes(batch(10), batch(7)), []
    if why == "network":
        net = FlatModel(nn.Sequential(nn.Linear(INPUTS, 8), nn.Tanh(), nn.Linear(8, CLASSES)))
    elif why == "loss":
        terms[0][0] = terms[0][0]._replace(loss=lambda logits: logits.square().sum())
    elif why == "passes":
        terms = [[term] for term in terms[0]]
    else:
        additions = [Decay(0.1)]
    found = factored_gradient(net, terms, True, additions)
    assert not isinstance(found, FactoredGradient)
    g, old = found.g.clone(), found.old.clone()
    expected = objective_gradient(net, terms, True, additions)
    assert torch.equal(g, expected.g)
    assert torch.equal(old, expected.old)
