"""Plain SGD: the gradient of the objective as it is."""

from __future__ import annotations

import torch
from helpers.training import Recorder, trained

from twofold import configure
from twofold.objectives import Er
from twofold.routines import Needs, Sgd, Step


def test_the_gradient_is_followed_as_it_is():
    g = torch.ones(3)
    step = Step(2, 1, None, g)
    assert Sgd().direct(g, step) is g
    assert step.log == {}
    assert Sgd().asks() == Needs.NOTHING


def test_an_objective_alone_means_sgd():
    identity = configure("rotated-mnist", "er").identity()
    assert configure("rotated-mnist", "er+sgd").identity() == identity
    assert configure("rotated-mnist", Er() + Sgd()).identity() == identity


def test_a_run_is_sgd_with_momentum():
    recorder = Recorder()
    trained("er+sgd", recorder)
    velocity = torch.zeros_like(recorder.weights[0])
    for n, direction in enumerate(recorder.directions):
        velocity = 0.9 * velocity + direction
        moved = recorder.weights[n + 1] - recorder.weights[n]
        torch.testing.assert_close(moved, -0.02 * velocity, rtol=1e-3, atol=1e-6)
