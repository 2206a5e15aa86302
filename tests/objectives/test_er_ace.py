"""ER-ACE: its loss against plain loops, its memory, and a whole iteration in plain PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.objectives import OUTPUTS, drawn, two_logits, value
from torch import Tensor
from torch.nn import functional as F

import twofold
from twofold.errors import UserError
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

SMALL = {"lr": 0.02, "batch_size": 8, "seed": 0, "iterations": 5}


def training_of(**options) -> Training:
    settings = Settings(memory="reservoir(40)", **SMALL | options)
    return Training(class_benchmark(norm=False), *Method.parse("er-ace").make(), settings)


def loss_among(logits: Tensor, y: Tensor, classes: set[int]) -> Tensor:
    """The mean of -log of a label's share among some classes, example by example."""
    losses = []
    for row, label in zip(logits, y.tolist(), strict=True):
        total = sum(row[c].exp() for c in classes)
        losses.append(-(row[label].exp() / total).log())
    return torch.stack(losses).mean()


@pytest.mark.parametrize("task", [2, 3])
def test_the_loss_is_that_of_the_equation(task):
    training = training_of()
    training.run()
    draw = drawn(training.benchmark, task, np.array([0, 25, 70, 1, 61, 30, 3, 31, 32, 4]))
    (terms,) = training.objective.passes(draw)
    new, old = two_logits(seed=1)
    in_batch, seen = set(draw.new.y.tolist()), set(range(3 * task))
    expected = loss_among(new, draw.new.y, in_batch)
    if max(draw.old.y.tolist()) in seen:
        expected = expected + loss_among(old, draw.old.y, seen)
        torch.testing.assert_close(value(terms, new, old), expected)


def test_new_examples_leave_absent_classes_alone():
    training = training_of()
    draw = drawn(training.benchmark, 2, np.arange(10))
    ((new, _),) = training.objective.passes(draw)
    logits = torch.randn(10, OUTPUTS, requires_grad=True)
    new.loss(logits).backward()
    absent = [c for c in range(OUTPUTS) if c not in set(draw.new.y.tolist())]
    assert not logits.grad[:, absent].any()
    assert torch.isfinite(logits.grad).all()


def test_a_run_is_a_plain_loop():
    """The same batches through torch alone: SGD with momentum on the two cross-entropies."""
    training = training_of()
    draws, start = [], training.benchmark.model()
    start.load_state_dict(training.net.module.state_dict())
    passes = training.objective.passes

    def noted(draw):
        draws.append(draw)
        return passes(draw)

    training.objective.passes = noted
    training.run()
    optimizer = torch.optim.SGD(start.parameters(), lr=0.02, momentum=0.9)
    for draw in draws:
        mask = torch.full((OUTPUTS,), -torch.inf)
        mask[draw.new.y] = 0.0
        if draw.old is None:
            loss = F.cross_entropy(start(draw.new.x), draw.new.y)
        else:
            loss = F.cross_entropy(start(draw.new.x) + mask, draw.new.y)
            seen = start(draw.old.x)[:, : 3 * draw.task]
            loss = loss + F.cross_entropy(seen, draw.old.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    theirs = torch.cat([p.detach().flatten() for p in start.parameters()])
    ours = torch.cat([p.detach().flatten() for p in training.net.module.parameters()])
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_its_memory_holds_the_current_task_unless_one_is_given():
    assert (
        twofold.configure("split-cifar100", "er-ace").memory == "per-class-task(100,current=true)"
    )
    few = twofold.configure("split-cifar100", "er-ace", memory_per_class=20)
    assert few.memory == "per-class-task(20,current=true)"
    assert few.memory_per_class == 100
    assert twofold.configure("split-cifar100", "er-ace", memory="ring(9)").memory == "ring(9)"
    again = twofold.configure("split-cifar100", "er-ace", memory=few.memory)
    assert again.identity() == few.identity()


def test_a_memory_of_past_tasks_only_is_refused():
    for text in ("herding(9)", "reservoir(9,current=false)", "per-class-task(100)"):
        with pytest.raises(UserError, match="er-ace needs a memory that holds the current task"):
            twofold.configure("split-cifar100", "er-ace", memory=text)


def test_a_domain_incremental_benchmark_is_refused():
    with pytest.raises(UserError, match=r"^er-ace keeps new classes .* not a domain-incremental"):
        twofold.configure("rotated-mnist", "er-ace")
    with pytest.raises(UserError, match="class-incremental"):
        twofold.run(domain_benchmark(), "er-ace", batch_size=8)
