"""Gradients without autograd's graph, against autograd's own, bit by bit."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.benchmarks import Batch
from twofold.gradients import frozen_gradient, objective_gradient
from twofold.models import FlatModel, mlp
from twofold.models.dense import Dense
from twofold.objectives import Draw
from twofold.objectives.er import Er


def batch(count: int, *shape: int) -> Batch:
    x = torch.randn(count, *(shape or (1, 4, 4)))
    return Batch(x, torch.randint(5, (count,)), torch.arange(count))


def autograd(module: nn.Module, *losses: tuple[float, Batch]) -> Tensor:
    """Return the gradient of weighted cross-entropies in one pass, from autograd alone."""
    net = FlatModel(copy.deepcopy(module))
    logits = net.module(torch.cat([each.x for _, each in losses]))
    parts = logits.split([len(each.y) for _, each in losses])
    total = sum(
        weight * F.cross_entropy(part, each.y)
        for part, (weight, each) in zip(parts, losses, strict=True)
    )
    total.backward()
    return net.gradient


def passes(new: Batch, old: Batch | None = None):
    return Er().passes(Draw(2 if old else 1, 1, new, old))


NETWORKS = {
    "the MLP": lambda: mlp(5, 16, 30),
    "one layer": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 5)),
    "five layers": lambda: deep(16, 12, 8, 8, 4, 5),
}


def deep(*sizes: int) -> nn.Sequential:
    """Return linear layers of these sizes with ReLUs between them."""
    layers = [part for size in pairwise(sizes) for part in (nn.Linear(*size), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers[:-1])


def both_gradients(module: nn.Module, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the gradient of ER's loss and autograd's, twice: the first must not count again."""
    new, old = batch(count), batch(count + 3)
    net = FlatModel(copy.deepcopy(module))
    assert net.dense is not None
    for _ in range(2):
        g = objective_gradient(net, passes(new, old), apart=False).g
        yield g, autograd(module, (0.5, old), (0.5, new))  # old terms come first in a pass


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("count", [1, 10, 64])
def test_gradients_equal_autograds_bit_by_bit(name, count):
    torch.manual_seed(count)
    for g, expected in both_gradients(NETWORKS[name](), count):
        assert torch.equal(g, expected)


@pytest.mark.parametrize("count", [1, 10, 64])
def test_gradients_of_odd_sizes_equal_autograds_up_to_rounding(count):
    """Some processors round a product differently if its result is not aligned to 16 bytes."""
    torch.manual_seed(count)
    for g, expected in both_gradients(deep(16, 9, 8, 7, 6, 5), count):
        torch.testing.assert_close(g, expected, rtol=1e-6, atol=1e-8)


def test_a_gradient_apart_and_references_equal_autograds():
    torch.manual_seed(0)
    module, new, old = mlp(5, 16, 30), batch(10), batch(7)
    net = FlatModel(copy.deepcopy(module))
    g, g_old, _ = objective_gradient(net, passes(new, old), apart=True)
    half = autograd(module, (0.5, old))
    assert torch.equal(g_old, half / 0.5)
    assert torch.equal(g, half + autograd(module, (0.5, new)))
    sizes = [4, 3]
    reference, _ = frozen_gradient(net, old.split(4), affine=True)
    parts = [autograd(module, (n / 7, b)) for n, b in zip(sizes, old.split(4), strict=True)]
    torch.testing.assert_close(reference, parts[0] + parts[1])
    assert torch.equal(frozen_gradient(net, [old], affine=True)[0], autograd(module, (1.0, old)))


class Own(nn.Sequential):
    """A class of a user's, which may do anything."""


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)),
        nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)),
        nn.Sequential(nn.Linear(4, 4), nn.ReLU()),
        nn.Sequential(nn.Linear(4, 4, bias=False)),
        nn.Sequential(nn.Flatten(0), nn.Linear(4, 4)),
        nn.Sequential(nn.Flatten()),
        nn.Sequential(),
        nn.Linear(4, 4),
        nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))),
        Own(nn.Linear(4, 4)),
    ],
    ids=str,
)
def test_a_different_network_is_left_to_autograd(module):
    assert Dense.read(module) is None


def test_layers_that_share_parameters_are_left_to_autograd():
    layer = nn.Linear(4, 4)
    assert Dense.read(nn.Sequential(layer, nn.ReLU(), layer)) is None
    second = nn.Linear(4, 4)
    second.weight = layer.weight
    assert Dense.read(nn.Sequential(layer, nn.ReLU(), second)) is None


def test_inputs_of_more_dimensions_are_left_to_autograd_unless_they_are_flattened():
    dense = Dense.read(nn.Sequential(nn.Linear(4, 4)))
    assert dense is not None
    assert dense.computes(torch.zeros(2, 4))
    assert not dense.computes(torch.zeros(2, 3, 4))


def hook(net: FlatModel, calls: list[str]) -> None:
    net.module[1].register_forward_hook(lambda *_: calls.append("called"))


def hook_backward(net: FlatModel, calls: list[str]) -> None:
    net.module[3].register_full_backward_hook(lambda *_: calls.append("called"))


def hook_gradient(net: FlatModel, calls: list[str]) -> None:
    net.module[1].weight.register_hook(lambda _: calls.append("called"))


@pytest.mark.parametrize("add", [hook, hook_backward, hook_gradient])
def test_hooks_are_called(add):
    net, calls = FlatModel(mlp(5, 16, 30)), list[str]()
    add(net, calls)
    objective_gradient(net, passes(batch(10)), apart=False)
    assert calls == ["called"]


def test_a_parameter_that_is_not_trained_gets_no_gradient():
    net = FlatModel(mlp(5, 16, 30))
    net.module[1].weight.requires_grad_(False)
    objective_gradient(net, passes(batch(10)), apart=False)
    assert not net.module[1].weight.grad.any()
    assert net.module[3].weight.grad.any()


def test_a_loss_that_looks_into_the_network_gets_a_graph():
    """The gradient of a weight decay in a loss of one's own must not be lost."""
    module, new = mlp(5, 16, 30), batch(10)
    net = FlatModel(copy.deepcopy(module))
    (term,) = passes(new)[0]
    own = term._replace(loss=lambda logits: term.loss(logits) + net.module[1].weight.square().sum())
    g = objective_gradient(net, [[own]], apart=False).g
    expected = autograd(module, (1.0, new))
    expected[: 16 * 30] += 2 * module[1].weight.detach().flatten()
    torch.testing.assert_close(g, expected)
