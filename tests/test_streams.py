"""Random draws as functions of their place."""

from __future__ import annotations

import numpy as np

from twofold.streams import stream


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
