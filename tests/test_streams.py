"""Random draws as functions of their place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from twofold.streams import seeded, stream


def test_a_stream_is_a_function_of_where_it_is_drawn():
    one = stream(1, "replay", 2, 3).random(4)
    assert np.array_equal(stream(1, "replay", 2, 3).random(4), one)
    others = [
        stream(2, "replay", 2, 3),
        stream(1, "memory", 2, 3),
        stream(1, "replay", 3, 3),
        stream(1, "replay", 2, 4),
        stream(1, "replay", 2),
    ]
    assert all(not np.array_equal(other.random(4), one) for other in others)


@pytest.mark.parametrize("failing", [False, True])
def test_seeded_draws_follow_from_the_stream_and_leave_the_generator_as_it_was(failing):
    drawn = []
    for other in (1, 2):
        torch.manual_seed(other)
        before = torch.get_rng_state()
        try:
            with seeded(stream(0, "network", 1, 2), torch.device("cpu")):
                drawn.append(torch.rand(3))
                assert not failing
        except AssertionError:
            assert failing
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*drawn)
