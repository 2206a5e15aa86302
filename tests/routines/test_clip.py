"""Clipping: against torch, and what is followed in a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.training import ITERATIONS, Recorder, trained
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.errors import UserError
from twofold.routines.base import Step
from twofold.routines.clip import Clip

vectors = st.tuples(st.integers(0, 2**31), st.floats(1e-6, 1e6))


def vector(seed: int, scale: float, size: int = 40) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return scale * torch.randn(size, generator=random, dtype=torch.float64)


@given(seed_and_scale=vectors, limit=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_clip_is_torchs(seed_and_scale, limit):
    g = vector(*seed_and_scale)
    parameter = torch.nn.Parameter(torch.zeros_like(g))
    parameter.grad = g.clone()
    torch.nn.utils.clip_grad_norm_([parameter], limit)  # adds 1e-6 to the norm
    clipped = Clip(limit).direct(g, Step(1, 1, None, g))
    torch.testing.assert_close(clipped, parameter.grad, rtol=2e-6 / min(1.0, limit), atol=0)
    assert clipped.norm() <= limit * (1 + 1e-12)
    if g.norm() <= limit:
        assert torch.equal(clipped, g)


def test_clip_limits_what_the_routine_before_it_made():
    before = torch.tensor([3.0, 4.0])
    step = Step(2, 1, None, gradient=torch.tensor([0.3, 0.4]))
    np.testing.assert_allclose(Clip(2.5).direct(before, step), [1.5, 2.0], rtol=1e-6)


@pytest.mark.parametrize("method", ["er+clip(0.1)", "er+gem+clip(0.1)", "joint+agem+clip(0.1)"])
def test_no_direction_that_is_followed_is_longer_than_the_limit(method):
    recorder = Recorder()
    _, result = trained(method, recorder)
    norms = np.array([float(direction.norm()) for direction in recorder.directions])
    assert norms.max() <= 0.1 * (1 + 1e-5)
    assert (norms > 0.0999).any()
    assert not result.curves["projected"][:ITERATIONS].any()  # shorter is no other direction


def test_a_zero_gradient_stays_zero():
    g = torch.zeros(3)
    assert torch.equal(Clip().direct(g, Step(1, 1, None, g)), g)


@pytest.mark.parametrize("limit", [0, -1.0])
def test_the_limit_is_above_0(limit):
    with pytest.raises(UserError, match="clip's limit must be above 0"):
        Clip(limit)
