"""`step`: the learning rate falls at intervals within every task."""

from __future__ import annotations

import pytest
import torch

import twofold
from twofold import UserError
from twofold.method import Method
from twofold.models import FlatModel
from twofold.routines import Step


def rates(text: str, count: int, task: int = 1) -> list[float]:
    _, (routine,) = Method.parse(f"er+{text}").make()
    net = FlatModel(torch.nn.Linear(1, 1))
    return [routine.step_size(1.0, Step(task, n, net, net.gradient)) for n in range(1, count + 1)]


def test_it_falls_by_the_factor_after_every_interval():
    expected = [1.0, 1.0, 0.5, 0.5, 0.25]
    assert rates("step(every=2,factor=0.5)", 5) == expected
    assert rates("step(2, 0.5)", 5, task=3) == expected  # and starts anew at a switch


def test_by_default_it_falls_to_a_tenth_after_a_thousand():
    result = rates("step", 2001)
    assert result[999] == 1
    assert (result[1000], result[2000]) == pytest.approx((0.1, 0.01))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step(every=0)", "step's every must be above 0, not 0"),
        ("step(factor=0)", "step's factor must be above 0 and below 1"),
        ("step(factor=1)", "step's factor must be above 0 and below 1"),
        ("step+step", "step is there twice"),
    ],
)
def test_what_makes_no_sense_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        twofold.configure("rotated-mnist", f"er+{text}")
