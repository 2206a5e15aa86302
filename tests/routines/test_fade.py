"""Fade: the direction of the routines before it, then the objective's gradient."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.training import ITERATIONS, Recorder, trained

import twofold
from twofold import UserError
from twofold.routines.base import Step
from twofold.routines.fade import Fade


def faded(iteration: int, length: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradient, a direction, and what is followed instead."""
    random = torch.Generator().manual_seed(iteration)
    g, direction = torch.randn(2, 30, generator=random, dtype=torch.float64)
    return g, direction, Fade(length).direct(direction, Step(2, iteration, None, g))


@pytest.mark.parametrize(("iteration", "length"), [(1, 300), (300, 300), (40, 7.5)])
def test_it_lies_between_the_direction_and_the_gradient(iteration, length):
    g, direction, d = faded(iteration, length)
    share = math.exp(-iteration / length)
    torch.testing.assert_close(d, share * direction + (1 - share) * g)


def test_its_limits_are_the_direction_and_the_gradient():
    _, direction, d = faded(1, 1e9)
    torch.testing.assert_close(d, direction)
    g, _, d = faded(10_000, 1)
    assert torch.equal(d, g)


def test_a_gradient_that_was_not_changed_is_not_touched():
    g = torch.randn(5)
    assert Fade().direct(g, Step(2, 1, None, g)) is g


def test_a_chain_fades_what_comes_before_it():
    """The first step after a switch is hold's own, up to what has faded; in task 1 all are er's."""
    runs = {}
    for method in ("er", "er+hold", "er+hold+fade(1)", "er+hold+fade(1e9)"):
        recorder = Recorder()
        trained(method, recorder)
        runs[method] = recorder.directions
    for step in range(ITERATIONS):
        assert torch.equal(runs["er+hold+fade(1)"][step], runs["er"][step])
    first, share = ITERATIONS, math.exp(-1)
    expected = share * runs["er+hold"][first] + (1 - share) * runs["er"][first]
    torch.testing.assert_close(runs["er+hold+fade(1)"][first], expected)
    torch.testing.assert_close(runs["er+hold+fade(1e9)"][-1], runs["er+hold"][-1])


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        ("hold+fade(0)", "fade's iterations must be above 0, not 0"),
        ("hold+fade(-5)", "fade's iterations must be above 0, not -5"),
        ("hold+fade(soon)", "fade's iterations must be a finite number"),
        ("fade", "fade has nothing to fade: write it after a routine such as hold"),
        ("warmup+fade", "fade has nothing to fade"),
        ("hold+clip+fade", "fade would undo clip: write it before"),
        ("hold+fade+fade", "fade is there twice"),
    ],
)
def test_what_makes_no_sense_is_refused(chain, message):
    with pytest.raises(UserError, match=message):
        twofold.configure("rotated-mnist", f"er+{chain}")
