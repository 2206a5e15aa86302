"""Gaps at task switches, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.measures import hand

import twofold
from twofold.evaluation.measures import measures
from twofold.evaluation.trajectory import Gap, gaps

NAN = np.nan


def test_gaps_by_hand() -> None:
    assert gaps(*hand()) == [
        Gap(switch=4, task=1, depth=40, lowest_at=2, recovery=4, before=90, length=4),
        Gap(switch=8, task=1, depth=9, lowest_at=2, recovery=None, before=89, length=4),
        Gap(switch=8, task=2, depth=20, lowest_at=1, recovery=2, before=80, length=4),
    ]


def test_a_given_tolerance() -> None:
    all_gaps = gaps(*hand(), tolerance=5)
    assert [gap.recovery for gap in all_gaps] == [3, 3, 2]  # at 85, 84 and 75 or more
    assert [gap.recovery for gap in gaps(*hand(), tolerance=9)] == [3, 0, 2]  # 80 is not below 80


def test_a_given_window() -> None:
    """The lowest accuracy is searched within it, but the recovery is not."""
    first = gaps(*hand(), window=1)
    assert [(gap.depth, gap.lowest_at) for gap in first] == [(20, 1), (1, 1), (20, 1)]
    assert [gap.recovery for gap in first] == [4, 0, 2]
    assert gaps(*hand(), window=4) == gaps(*hand())


def test_a_task_that_only_rises_has_no_gap() -> None:
    (gap,) = gaps([1, 1, 2, 2], [[50, NAN], [60, NAN], [61, 5], [70, 6]])
    assert gap == Gap(switch=2, task=1, depth=0, lowest_at=0, recovery=0, before=60, length=2)
    values = measures([1, 1, 2, 2], [[50, NAN], [60, NAN], [61, 5], [70, 6]], [[60.0], [70.0, 6.0]])
    assert (values["gap_area"], values["recovered"], values["wf10"]) == (0, 100, 0)


@pytest.mark.parametrize("level", [64.3, 97.8, 33.3])
def test_a_point_is_a_point_in_single_precision(level: float) -> None:
    """64.3 - 63.3 is more than 1 there, but one image in a thousand does not change a verdict."""
    curve = np.array([level, level - 5, level - 1.0, level - 3], np.float32)
    (gap,) = gaps([1, 2, 2, 2], np.stack([curve, curve], 1))
    assert gap.recovery == 2
    (gap,) = gaps([1, 2, 2, 2], np.stack([curve, curve], 1), tolerance=5)
    assert gap.recovery == 0


def test_measures_and_gaps_of_plain_arrays():
    task, nan = [1, 1, 2, 2], float("nan")
    accuracy = [[50, nan], [90, nan], [60, 40], [85, 80]]
    values = twofold.measures(task, accuracy)
    assert values["min"] == 60
    assert values["avg"] == 82.5
    assert values["forgetting"] == 5
    (gap,) = twofold.gaps(task, accuracy)
    assert (gap.depth, gap.lowest_at, gap.recovery) == (30, 1, None)
    for wrong in (([0, 0, 1, 1], accuracy), ([1, 2], accuracy), ([1, 1, 3, 3], accuracy)):
        with pytest.raises(twofold.UserError):
            twofold.measures(*wrong)
        with pytest.raises(twofold.UserError):
            twofold.gaps(*wrong)
