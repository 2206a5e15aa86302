"""Warm-up of the momentum: steps are as long in sum, and come at once after a switch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.training import ITERATIONS, Recorder, trained

import twofold
from twofold.errors import UserError
from twofold.routines.base import Step
from twofold.routines.momentum_warmup import MomentumWarmup


def test_steps_follow_the_equation():
    """Weights that a loop of its own computes from the recorded directions."""
    recorder = Recorder()
    trained("er+momentum-warmup(3)", recorder)
    velocity = torch.zeros_like(recorder.directions[0])
    for n, direction in enumerate(recorder.directions):
        task, iteration = divmod(n, ITERATIONS)
        back = 1.0 if task == 0 else 1 - math.exp(-iteration / 3)
        velocity = 0.9 * back * velocity + direction
        moved = recorder.weights[n + 1] - recorder.weights[n]
        expected = -0.02 * (1 - 0.9 * back) / (1 - 0.9) * velocity
        torch.testing.assert_close(moved, expected, rtol=1e-3, atol=1e-6)


def test_the_first_step_after_a_switch_is_as_long_as_momentum_makes_it_in_sum():
    routine, step = MomentumWarmup(), Step(2, 1, None, None, momentum=0.9)
    assert routine.momentum(0.9, step) == 0
    assert routine.step_size(0.1, step) == pytest.approx(0.1 * sum(0.9**k for k in range(1000)))


def test_long_after_a_switch_all_is_as_usual():
    routine, step = MomentumWarmup(10), Step(2, 1000, None, None, momentum=0.9)
    assert routine.momentum(0.9, step) == pytest.approx(0.9)
    assert routine.step_size(0.1, step) == pytest.approx(0.1)


def test_a_very_long_warm_up_is_sgd_without_momentum_and_with_a_larger_learning_rate():
    """This holds from the second task on; the first one is plain ER's."""
    warm, plain = Recorder(), Recorder()
    trained("er+momentum-warmup(1e9)", warm)
    trained("er", plain)
    first = ITERATIONS + 1
    for one, other in zip(warm.weights[:first], plain.weights[:first], strict=True):
        assert torch.equal(one, other)
    for n in range(ITERATIONS, 3 * ITERATIONS):
        moved = warm.weights[n + 1] - warm.weights[n]
        torch.testing.assert_close(moved, -0.2 * warm.directions[n], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("optimizer", "longer"),
    [("sgd", 10.0), ("nesterov", 10.0), ("rmsprop(momentum=0.9)", 10.0), ("adam", 1.0)],
)
def test_steps_become_longer_only_where_a_velocity_adds_up_gradients(optimizer, longer):
    """Adam averages gradients, so its steps are as long without momentum."""
    seen = []

    class Seen(Recorder):
        def step_size(self, lr: float, step: Step) -> float:
            seen.append((step.task, step.iteration, lr))
            return lr

    trained("er+momentum-warmup", Seen(), optimizer=optimizer)
    of = {(task, iteration): lr for task, iteration, lr in seen}
    assert of[2, 1] == pytest.approx(longer * of[1, 1])


def test_it_matters_from_the_second_task_on():
    _, usual = trained("er")
    _, warm = trained("er+momentum-warmup")
    first = ITERATIONS + 1
    np.testing.assert_array_equal(usual.curves["loss"][:first], warm.curves["loss"][:first])
    assert (usual.curves["loss"][first:] != warm.curves["loss"][first:]).all()


@pytest.mark.parametrize("iterations", ["0", "-1", "nan", "inf", "soon"])
def test_a_wrong_number_of_iterations_is_refused_in_one_line(iterations):
    with pytest.raises(UserError, match="momentum-warmup") as error:
        twofold.configure("rotated-mnist", f"er+momentum-warmup({iterations})")
    assert "\n" not in str(error.value)


def test_without_momentum_there_is_nothing_to_warm_up():
    with pytest.raises(UserError, match="there is no momentum"):
        twofold.configure("rotated-mnist", "er+momentum-warmup", momentum=0.0)
