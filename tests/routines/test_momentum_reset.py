"""Momentum reset: the first step of a later task."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.training import ITERATIONS, Recorder, trained

import twofold
from twofold.errors import UserError
from twofold.objectives import Objective
from twofold.routines.base import Step
from twofold.routines.momentum_reset import MomentumReset


def test_the_first_step_of_a_later_task_follows_its_own_gradient_alone():
    recorder = Recorder()
    trained("er+momentum-reset", recorder)
    for start in range(0, 3 * ITERATIONS, ITERATIONS):
        velocity = torch.zeros_like(recorder.directions[0])
        for n in range(start, start + ITERATIONS):
            velocity = 0.9 * velocity + recorder.directions[n]
            moved = recorder.weights[n + 1] - recorder.weights[n]
            torch.testing.assert_close(moved, -0.02 * velocity, rtol=1e-3, atol=1e-6)


def test_without_momentum_there_is_nothing_to_reset():
    with pytest.raises(UserError, match="there is no momentum"):
        twofold.configure("rotated-mnist", "er+momentum-reset", momentum=0.0)
    assert MomentumReset().momentum(0.9, Step(1, 1, None, None)) == 0.9


@pytest.mark.parametrize("objective", sorted(Objective.known))
def test_resetting_momentum_matters_from_the_second_task_on(objective):
    needs_current = Objective.find(objective).needs_current
    memory = {"memory": "reservoir(50)"} if needs_current else {}
    _, kept = trained(objective, **memory)
    _, reset = trained(f"{objective}+momentum-reset", **memory)
    # The first update of task 2 is the first to differ, and the loss after it the first to show.
    first = ITERATIONS + 1
    np.testing.assert_array_equal(kept.curves["loss"][:first], reset.curves["loss"][:first])
    assert (kept.curves["loss"][first:] != reset.curves["loss"][first:]).all()
