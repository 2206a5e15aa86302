"""Plugins in replication/ that were tried and not kept: each follows its equation."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from twofold import Method, Routine, Step
from twofold.benchmarks import Batch
from twofold.discovery import import_file
from twofold.models import FlatModel

FOLDER = Path(__file__).parents[2] / "replication"
WEIGHT = 0.75  # of old data in the loss


def routine(file: str, text: str) -> Routine:
    import_file(str(FOLDER / file))
    (made,) = Method.parse(f"er+{text}").make()[1]
    return made


def network(batch_norm: bool = False, classes: int = 3) -> FlatModel:
    torch.manual_seed(0)
    norm = [nn.BatchNorm1d(6)] if batch_norm else []
    net = FlatModel(nn.Sequential(nn.Linear(5, 6), *norm, nn.ReLU(), nn.Linear(6, classes)))
    net(torch.randn(20, 5) * 2 + 1)  # for statistics other than 0 and 1
    return net


def batch(count: int = 16) -> Batch:
    return Batch(torch.randn(count, 5), torch.arange(count) % 3, torch.arange(count))


# ahead


def autograd(net: FlatModel, old: Batch, weights: Tensor) -> Tensor:
    """The gradient of the mean loss of old examples at these weights, in evaluation mode."""
    module = copy.deepcopy(net.module).eval()
    vector_to_parameters(weights.clone(), module.parameters())
    loss = F.cross_entropy(module(old.x), old.y)
    return parameters_to_vector(torch.autograd.grad(loss, list(module.parameters())))


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("use", ["correct", "project"])
def test_ahead_takes_the_gradient_of_old_data_where_the_step_leads(use, batch_norm):
    net, old, reach = network(batch_norm), batch(), 0.5
    here = autograd(net, old, net.values)
    g = net.gradient.copy_(torch.randn(net.size) - here)  # against old data; its place is reused
    before = [each.clone() for each in (net.values, g, *net.buffers())]
    step = Step(2, 1, net, g, memory=lambda count: old, old_weight=WEIGHT)
    direction = routine("ahead.py", f"ahead(reach={reach},use={use})").direct(g, step)
    there = autograd(net, old, net.values - reach * before[1])
    expected = before[1] + WEIGHT * (there - here)
    if use == "project":
        assert before[1] @ there < 0
        expected = before[1] - (before[1] @ there) / (there @ there) * there
    torch.testing.assert_close(direction, expected, rtol=1e-4, atol=1e-5)
    after = [net.values, net.gradient, *net.buffers()]
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))


def test_ahead_keeps_a_gradient_that_agrees_with_old_data():
    net, old = network(), batch()
    g = autograd(net, old, net.values)
    step = Step(2, 1, net, g, memory=lambda count: old, old_weight=WEIGHT)
    assert torch.equal(routine("ahead.py", "ahead(0.01,use=project)").direct(g, step), g)


def test_ahead_leaves_the_first_task_alone():
    net = network()
    g = torch.randn(net.size)
    assert routine("ahead.py", "ahead").direct(g, Step(1, 1, net, g)) is g


# two-sided


def moments(net: FlatModel, x: Tensor, softmax: bool) -> list[tuple[Tensor, Tensor]]:
    """A and B of both linear layers, with every Jacobian computed by itself."""
    found, parts = [], list(net.module)
    for k in [k for k, part in enumerate(parts) if isinstance(part, nn.Linear)]:
        head, tail = nn.Sequential(*parts[:k]), nn.Sequential(*parts[k + 1 :])
        inputs = head(x).detach()
        Z = F.pad(inputs, (0, 1), value=1.0)
        metrics = []
        for output in parts[k](inputs).detach():
            J = torch.autograd.functional.jacobian(tail, output)
            p = tail(output).detach().softmax(0)
            fisher = p.diag() - p[:, None] * p if softmax else torch.eye(len(p))
            metrics.append(J.T @ fisher @ J)
        found.append((Z.T @ Z / len(Z), torch.stack(metrics).mean(0)))
    return found


def solved(net: FlatModel, g: Tensor, omega: float, sides: list[tuple[Tensor, Tensor]]) -> Tensor:
    """(I + omega A x B)^-1 g, layer by layer, from the whole matrix."""
    layers, direction = zip(g.split(sizes(net)), sides, strict=True), []
    for part, (A, B) in layers:
        weight, bias = part.split([len(B) * (len(A) - 1), len(B)])
        G = torch.cat([weight.view(len(B), -1), bias[:, None]], 1).double()
        whole = torch.eye(G.numel()) + omega * torch.kron(B, A).double()
        D = torch.linalg.solve(whole, G.flatten()).view_as(G).float()
        direction += [D[:, :-1].flatten(), D[:, -1]]
    return torch.cat(direction)


def sizes(net: FlatModel) -> list[int]:
    """The numbers of parameters of the linear layers."""
    parts = [part for part in net.module if isinstance(part, nn.Linear)]
    return [sum(p.numel() for p in part.parameters()) for part in parts]


def test_two_sided_solves_the_whole_system():
    """A metric with one logit draws a random sign only, and signs do not matter."""
    net, old = network(classes=1), batch()
    g, omega = torch.randn(net.size), 7.0
    made = routine("two_sided.py", f"two-sided(omega={omega})")
    made.start(net)
    direction = made.direct(g, Step(2, 1, net, g, memory=lambda count: old))
    expected = solved(net, g, omega, moments(net, old.x, softmax=False))
    torch.testing.assert_close(direction, expected, rtol=1e-3, atol=1e-4)
    assert (direction - g).norm() > 0.1 * g.norm()


@pytest.mark.parametrize("metric", ["logits", "softmax"])
def test_two_sided_draws_an_unbiased_estimate_of_the_metric(metric):
    """Many copies of the same examples, each with a random vector of its own."""
    net, few = network(), batch(4)
    many = Batch(*(each.repeat(5000, *[1] * (each.dim() - 1)) for each in few[:3]))
    g, omega = torch.randn(net.size), 7.0
    made = routine("two_sided.py", f"two-sided(omega={omega},metric={metric})")
    made.start(net)
    direction = made.direct(g, Step(2, 1, net, g, memory=lambda count: many))
    expected = solved(net, g, omega, moments(net, few.x, softmax=metric == "softmax"))
    assert (direction - expected).norm() < 0.02 * expected.norm()


# slow


def test_slow_shortens_the_steps_of_all_tasks_after_the_first():
    made = routine("slow.py", "slow(0.5)")
    lengths = [made.step_size(0.1, Step(task, 9, network(), torch.ones(1))) for task in (1, 2, 3)]
    assert lengths == [0.1, 0.05, 0.05]
    assert routine("slow.py", "slow").step_size(0.1, Step(2, 1, network(), torch.ones(1))) == 0.025
