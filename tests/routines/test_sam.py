"""Sharpness-aware minimisation against two explicit passes of plain autograd."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from torch.nn import functional as F

import twofold
from twofold.errors import UserError
from twofold.method import Method
from twofold.routines.base import Step
from twofold.routines.sam import Sam
from twofold.settings import Settings
from twofold.training import Training, initialised

RHO, LR, B = 0.3, 0.02, 8


def trained(method: str, benchmark, watch=lambda draw: None, momentum: float = 0.0):
    objective, routines = Method.parse(method).make()
    passes = objective.passes
    objective.passes = lambda draw: (watch(draw), passes(draw))[1]
    settings = Settings(lr=LR, batch_size=B, seed=3, iterations=4, momentum=momentum)
    training = Training(benchmark, objective, routines, settings)
    return training, training.run()


def loss_of(module, draw) -> torch.Tensor:
    x, t = draw.new.x, draw.task
    logits = module(x if draw.old is None else torch.cat([x, draw.old.x]))
    loss = F.cross_entropy(logits[: len(x)], draw.new.y) / t
    if draw.old is not None:
        loss = loss + (1 - 1 / t) * F.cross_entropy(logits[len(x) :], draw.old.y)
    return loss


@pytest.mark.parametrize("norm", [False, True])
def test_er_with_sam_is_two_passes_of_autograd(norm):
    """Weights and batch-norm statistics, over three tasks; the second pass leaves no trace."""
    benchmark, draws = class_benchmark(norm=norm), []
    training, _ = trained(f"er+sam({RHO})", benchmark, draws.append)
    module = benchmark.model()
    module.load_state_dict(initialised(benchmark, 3, torch.device("cpu")).module.state_dict())
    for draw in draws:
        parameters = list(module.parameters())
        first = torch.autograd.grad(loss_of(module, draw), parameters)
        norm_of_g = torch.sqrt(sum(g.square().sum() for g in first))
        away = copy.deepcopy(module)  # its statistics are thrown away with it
        with torch.no_grad():
            for p, g in zip(away.parameters(), first, strict=True):
                p.add_(g * RHO / norm_of_g)
        second = torch.autograd.grad(loss_of(away, draw), list(away.parameters()))
        with torch.no_grad():
            for p, g in zip(parameters, second, strict=True):
                p.sub_(LR * g)
    assert len(draws) == 12
    for key, value in training.net.module.state_dict().items():
        torch.testing.assert_close(value, module.state_dict()[key], rtol=1e-3, atol=1e-5)


def test_it_makes_a_difference_and_a_tiny_rho_hardly_any():
    plain, _ = trained("er", domain_benchmark())
    far, _ = trained("er+sam(0.5)", domain_benchmark())
    near, _ = trained("er+sam(1e-6)", domain_benchmark())
    moved = (plain.net.values - far.net.values).norm()
    assert (plain.net.values - near.net.values).norm() < 1e-3 * moved


@pytest.mark.parametrize("objective", ["finetune", "joint", "der", "bic"])
def test_the_gradient_elsewhere_is_the_whole_objectives(objective):
    """Joint with batch norm has several passes, and BiC's previous model stays where it is."""
    slopes = []

    class Watching(Sam):
        def direct(self, g, step):
            here = step.gradient_at(step.net.values).clone()
            slopes.append((here, g.clone(), step.net.values.clone()))
            direction = super().direct(g, step)
            assert torch.equal(step.net.values, slopes[-1][2])
            return direction

    component, _ = Method.parse(objective).make()
    settings = Settings(lr=LR, batch_size=B, seed=3, iterations=2)
    Training(class_benchmark(), component, [Watching()], settings).run()
    for here, g, _ in slopes:
        torch.testing.assert_close(here, g, rtol=1e-3, atol=1e-6)


def test_no_gradient_is_no_way_up():
    g, requests = torch.zeros(3), []

    class Net:
        values = torch.tensor([1.0, 2.0, 3.0])

    step = Step(1, 1, Net(), g, gradient_at=lambda values: (requests.append(values), g)[1])
    assert torch.equal(Sam().direct(g, step), g)
    assert torch.equal(requests[0], Net.values)


def test_what_comes_before_it_would_be_lost():
    for method, before in (("er+gem+sam", "gem"), ("er+clip+sam", "clip"), ("er+sam+sam", "sam")):
        with pytest.raises(UserError, match=f"sam after {before} would drop what {before} did"):
            twofold.configure("rotated-mnist", method)
    for method in ("er+sam+gem", "er+warmup+ema+sam+rescale", "sam", "er+sam+clip"):
        twofold.configure("rotated-mnist", method)


def test_rho_is_a_distance():
    with pytest.raises(UserError, match="sam's rho must be above 0"):
        Sam(0.0)
