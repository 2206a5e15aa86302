"""The whole loop against an ordinary one in plain PyTorch, fed with the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import contextmanager

import numpy as np
import pytest
import quadprog
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from torch import nn
from torch.nn import functional as F

from twofold import Benchmark, Method
from twofold.objectives import Draw
from twofold.settings import Settings
from twofold.training import Result, Training, initialised

LR, SEED, ITERATIONS = 0.05, 3, 8
MAKE = {"class": class_benchmark, "domain": domain_benchmark}
PLACES = {
    f"{scenario}{'-norm' * norm}": MAKE[scenario](4, norm=norm)
    for scenario, norm in itertools.product(MAKE, (False, True))
}


def ours(method: str, benchmark: Benchmark, momentum: float) -> tuple[Training, Result, list[Draw]]:
    objective, routines = Method.parse(method).make()
    draws, passes = [], objective.passes
    objective.passes = lambda draw: (draws.append(draw), passes(draw))[1]
    settings = Settings(lr=LR, batch_size=8, seed=SEED, iterations=ITERATIONS, momentum=momentum)
    training = Training(benchmark, objective, routines, settings)
    return training, training.run(), draws


@contextmanager
def frozen(module: nn.Module):
    """Batch norm at its running statistics, and its scale and shift without gradients."""
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    for norm in norms:
        norm.eval().requires_grad_(False)
    yield
    for norm in norms:
        norm.train().requires_grad_(True)


def flat_gradient(module: nn.Module) -> torch.Tensor:
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in module.parameters()]
    return torch.cat([part.flatten() for part in parts])


def projected(g: torch.Tensor, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """GEM's, with gamma 0.5, by the solver of its authors."""
    G = torch.stack(list(rows))
    if not bool((G @ g < 0).any()):
        return g
    M, q = G.double().numpy(), (G @ g).double().numpy()
    P = M @ M.T + 1e-3 * np.eye(len(M))
    v = quadprog.solve_qp(P, -q, np.eye(len(M)), np.full(len(M), 0.5))[0]
    return g + torch.from_numpy(v).float() @ G


def ordinary(benchmark: Benchmark, draws: list[Draw], momentum: float, add_up: bool | None):
    """Step by step. add_up: whether GEM's references do (D2); None for no GEM."""
    module = benchmark.model()
    start = initialised(benchmark, SEED, torch.device("cpu"))
    module.load_state_dict(start.module.state_dict())
    optimiser = torch.optim.SGD(module.parameters(), lr=LR, momentum=momentum)
    losses, projections = [], 0
    for draw in draws:
        x, t = draw.new.x, draw.task
        logits = module(x if draw.old is None else torch.cat([x, draw.old.x]))
        loss = F.cross_entropy(logits[: len(x)], draw.new.y) / t
        if draw.old is not None:
            loss = loss + (1 - 1 / t) * F.cross_entropy(logits[len(x) :], draw.old.y)
        optimiser.zero_grad()
        loss.backward()
        if add_up is not None and draw.references:
            g, rows = flat_gradient(module), []
            with frozen(module):
                optimiser.zero_grad()
                for batch in draw.references:
                    if not add_up:
                        optimiser.zero_grad()
                    F.cross_entropy(module(batch.x), batch.y).backward()
                    rows.append(flat_gradient(module))
            direction = projected(g, rows)
            projections += direction is not g
            parts = direction.split([p.numel() for p in module.parameters()])
            for p, part in zip(module.parameters(), parts, strict=True):
                p.grad = part.view_as(p).clone()
        optimiser.step()
        losses.append(loss.item())
    return module, losses, projections


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(
    ("method", "add_up"),
    [("er", None), ("er+gem", False), ("er+gem(references=cumulative)", True)],
)
def test_a_run_is_the_ordinary_loop(method, add_up, where, momentum):
    benchmark = PLACES[where]
    training, result, draws = ours(method, benchmark, momentum)
    module, losses, projections = ordinary(benchmark, draws, momentum, add_up)
    assert len(losses) == 4 * ITERATIONS
    assert projections == result.curves["projected"].sum()
    assert (projections > 0) == (add_up is not None)
    np.testing.assert_allclose(result.curves["loss"], losses, rtol=1e-3, atol=1e-5)
    for key, value in training.net.module.state_dict().items():
        torch.testing.assert_close(value, module.state_dict()[key], rtol=1e-3, atol=1e-4)
