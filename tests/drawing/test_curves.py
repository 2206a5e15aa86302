"""Curves and timelines, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.drawing.curves import Timeline, mean_curve
from twofold.errors import UserError

nan = np.nan


def test_a_curve_is_the_mean_over_seeds_with_its_standard_error() -> None:
    curve = mean_curve([[50, nan, 90], [54, 62, 92], [58, 70, 94]])
    assert curve.x.tolist() == [1, 3]  # the second iteration was not evaluated with every seed
    assert curve.mean.tolist() == [54, 92]
    np.testing.assert_allclose(curve.error, [4 / np.sqrt(3), 2 / np.sqrt(3)])
    assert mean_curve([[50, 60]]).error.tolist() == [0, 0]


def test_a_part_of_a_curve_has_both_ends() -> None:
    curve = mean_curve([[1, 2, 3, 4, 5]]).between(2, 4)
    assert (curve.x.tolist(), curve.mean.tolist()) == ([2, 3, 4], [2, 3, 4])


def test_a_timeline_begins_with_the_task_that_is_shown() -> None:
    learned = [1, 1, 1, 2, 2, 3]
    assert Timeline.of(learned, 1) == Timeline(1, [0, 3, 5], [3, 5, 6])
    assert Timeline.of(learned, 2) == Timeline(2, [3, 5], [5, 6])
    assert Timeline.of(learned, 2).switches == [5]
    for task in (0, 4):
        with pytest.raises(UserError, match=f"task must be from 1 to 3 or mean, not {task}"):
            Timeline.of(learned, task)


@pytest.mark.parametrize(
    ("iterations", "width"), [(300, 1), (301, 5), (1500, 5), (1501, 20), (1_000_000, 1000)]
)
def test_bins_are_few_and_end_with_the_tasks(iterations: int, width: int) -> None:
    half = iterations // 2
    timeline = Timeline(1, [0, half], [half, iterations])
    assert timeline.bin_width == width
    bins = timeline.bins()
    assert {0, half, iterations} <= {*bins}
    assert max(np.diff(bins)) <= width
