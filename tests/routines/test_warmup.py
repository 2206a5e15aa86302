"""Warm-up: step sizes by hand, and the steps of a run."""

from __future__ import annotations

import itertools
import math

import pytest
from helpers.training import ITERATIONS, Recorder, trained
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.errors import UserError
from twofold.routines.base import Step
from twofold.routines.warmup import Warmup


def rates(routine: Warmup, task: int, count: int) -> list[float]:
    return [routine.step_size(0.5, Step(task, n, None, None)) for n in range(1, count + 1)]


def test_warmup_by_hand():
    assert rates(Warmup(4), task=2, count=6) == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    quarter = 0.5 * (1 - math.sqrt(0.5)) / 2
    expected = [quarter, 0.25, 0.5 - quarter, 0.5, 0.5, 0.5]
    assert rates(Warmup(4, "cosine"), task=3, count=6) == pytest.approx(expected, rel=1e-12)
    assert rates(Warmup(4), task=1, count=6) == 6 * [0.5]


@given(iterations=st.integers(1, 1000), shape=st.sampled_from(["linear", "cosine"]))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_step_size_only_grows_and_ends_full(iterations, shape):
    sizes = rates(Warmup(iterations, shape), task=2, count=iterations + 1)
    assert sizes[0] > 0
    assert all(a <= b for a, b in itertools.pairwise(sizes))
    assert sizes[iterations - 1 :] == [0.5, 0.5]


def test_the_weights_move_by_the_step_size_times_the_velocity():
    recorder = Recorder()
    trained("er+warmup(4)", recorder, momentum=0.0)
    moved = [
        float((b - a).norm()) for a, b in zip(recorder.weights, recorder.weights[1:], strict=False)
    ]
    ratios = [m / float(d.norm()) for m, d in zip(moved, recorder.directions, strict=True)]
    ramp = [0.005, 0.01, 0.015, 0.02, 0.02, 0.02]
    assert ratios == pytest.approx([*(ITERATIONS * [0.02]), *ramp, *ramp], rel=1e-3)


def test_it_takes_at_least_one_iteration():
    with pytest.raises(UserError, match="warmup's iterations must be above 0"):
        Warmup(0)
