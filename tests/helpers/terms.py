"""A plain loop of replay in torch, with the batches of a run and a further loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.benchmarks import class_benchmark
from helpers.training import training_of


class Outputs(NamedTuple):
    """What the last layer of a network sees, and what it makes of it."""

    hidden: Tensor
    logits: Tensor


Penalty = Callable[[nn.Sequential, Tensor, Outputs, int], Tensor]


def is_a_plain_loop(
    method: str,
    norm: bool,
    penalty: Penalty,
    begin: Callable[[nn.Sequential, int], None] = lambda model, task: None,
) -> None:
    """Train a method, and compare it with SGD on its cross-entropy plus a penalty.

    begin: called before every iteration with the model and the task.
    """
    benchmark = class_benchmark(norm=norm)
    training = training_of(method, benchmark=benchmark, iterations=4)
    model, draws = benchmark.model(), []
    model.load_state_dict(training.net.module.state_dict())
    passes = training.objective.passes

    def noted(draw):
        draws.append(draw)
        return passes(draw)

    training.objective.passes = noted
    losses = training.run().curves["loss"]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for draw, ours in zip(draws, losses, strict=True):
        t, old = draw.task, draw.old
        x = draw.new.x if old is None else torch.cat([old.x, draw.new.x])
        y = draw.new.y if old is None else torch.cat([old.y, draw.new.y])
        begin(model, t)
        hidden = model[:-1](x)
        logits = model[-1](hidden)
        if old is None:
            loss = F.cross_entropy(logits, y)
            loss = loss / t if method.startswith("er") else loss
        else:
            b = len(old.y)
            loss = (1 - 1 / t) * F.cross_entropy(logits[:b], y[:b])
            loss = loss + 1 / t * F.cross_entropy(logits[b:], y[b:])
        loss = loss + penalty(model, x, Outputs(hidden, logits), t)
        torch.testing.assert_close(float(ours), float(loss.detach()), rtol=1e-4, atol=1e-5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    theirs = torch.cat([p.detach().flatten() for p in model.parameters()])
    ours = torch.cat([p.detach().flatten() for p in training.net.module.parameters()])
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
