"""`cosine`: the learning rate falls within every task."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.benchmarks import domain_benchmark

import twofold
from twofold import UserError
from twofold.method import Method
from twofold.models import FlatModel
from twofold.routines import Cosine, Step
from twofold.settings import Settings
from twofold.training import Training


def at(iteration: int, length: int | None, task: int = 1) -> Step:
    net = FlatModel(torch.nn.Linear(1, 1))
    return Step(task, iteration, net, net.gradient, iterations=length)


def test_it_is_half_a_cosine_in_every_task():
    for task in (1, 2):
        sizes = [Cosine().step_size(0.4, at(n, 4, task)) for n in range(1, 5)]
        assert sizes == pytest.approx([0.2 * (1 + math.cos(math.pi * n / 4)) for n in range(4)])


def test_it_ends_at_the_floor():
    routine = Cosine(floor=0.25, iterations=10)
    assert routine.step_size(1.0, at(1, None)) == 1
    assert [routine.step_size(1.0, at(n, 5)) for n in (11, 12, 100)] == pytest.approx([0.25] * 3)


def test_a_run_tells_the_length_of_its_tasks():
    """The learning rates that a run follows are those of the definition."""
    settings = Settings(lr=0.1, momentum=0.0, batch_size=8, seed=1, iterations=5, tasks=2)
    training = Training(domain_benchmark(), *Method.parse("er+cosine").make(), settings)
    before, rates = training.net.values.clone(), []

    def every() -> None:
        moved = (training.net.values - before).norm() / training.velocity.norm()
        rates.append(moved.item())
        before.copy_(training.net.values)

    training.run(every)
    expected = [0.05 * (1 + math.cos(math.pi * n / 5)) for n in range(5)]
    assert rates == pytest.approx(expected * 2, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cosine(floor=1)", "cosine's floor must be"),
        ("cosine(floor=-0.1)", "cosine's floor must be"),
        ("cosine(iterations=0)", "cosine's iterations must be above 0, not 0"),
        ("cosine+cosine", "cosine is there twice"),
    ],
)
def test_what_makes_no_sense_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        twofold.configure("rotated-mnist", f"er+{text}")


def test_without_a_length_it_says_so():
    with pytest.raises(UserError, match=r"cosine needs the length of a task: cosine\(iterations="):
        Cosine().step_size(0.1, at(1, None))
