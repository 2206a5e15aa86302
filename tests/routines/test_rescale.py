"""Rescaling: the direction of a projection with the norm of the gradient."""

from __future__ import annotations

import numpy as np
import torch
from helpers.training import ITERATIONS, Recorder, trained
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.routines.base import Step
from twofold.routines.rescale import Rescale

vectors = st.tuples(st.integers(0, 2**31), st.floats(1e-6, 1e6))


def vector(seed: int, scale: float, size: int = 40) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return scale * torch.randn(size, generator=random, dtype=torch.float64)


@given(seed_and_scale=vectors, other=vectors)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rescale_gives_the_direction_the_norm_of_the_gradient(seed_and_scale, other):
    g, direction = vector(*seed_and_scale), vector(*other)
    rescaled = Rescale().direct(direction, Step(2, 1, None, g))
    torch.testing.assert_close(rescaled.norm(), g.norm(), rtol=1e-12, atol=0)
    torch.testing.assert_close(rescaled / g.norm(), direction / direction.norm())


def test_a_gradient_that_was_not_changed_is_not_touched():
    g = torch.randn(5)
    assert Rescale().direct(g, Step(2, 1, None, g)) is g


def test_no_direction_at_all_stays_so():
    step = Step(2, 1, None, torch.ones(3))
    assert torch.equal(Rescale().direct(torch.zeros(3), step), torch.zeros(3))


def test_gamma_changes_the_direction_and_not_the_length():
    ends = []
    for gamma in (0.0, 20.0):
        recorder = Recorder()
        _, result = trained(f"er+gem(gamma={gamma},when=always)+rescale", recorder)
        np.testing.assert_allclose(result.curves["norm_ratio"], 1, rtol=1e-5)
        assert result.curves["projected"][ITERATIONS:].all()
        ends.append(recorder.directions[ITERATIONS])
    one, other = ends
    assert float(torch.nn.functional.cosine_similarity(one, other, dim=0)) < 0.999
    torch.testing.assert_close(one.norm(), other.norm(), rtol=1e-5, atol=0)
