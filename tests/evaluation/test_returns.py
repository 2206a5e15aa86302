"""Measures of tasks that return, on a worked example."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.errors import UserError
from twofold.evaluation.measures import measures
from twofold.evaluation.metrics import average_accuracy, average_minimum_accuracy
from twofold.evaluation.trajectory import gaps

NAN = np.nan
ORDER = [1, 2, 1, 3]
TASK = [1, 1, 2, 2, 3, 3, 4, 4]
A = [50.0, 90.0, 40.0, 60.0, 80.0, 92.0, 70.0, 85.0]  # task 1
B = [NAN, NAN, 30.0, 80.0, 55.0, 65.0, 45.0, 60.0]  # task 2
C = [NAN] * 6 + [20.0, 70.0]  # task 3
BACK = [NAN] * 4 + A[4:]  # task 1 since its return
CURVES = np.array([A, B, BACK, C]).T


def expected() -> dict[str, float]:
    """Return the measures by hand: task 1 is learned after 2 iterations, and counts once."""
    return {
        "min": np.mean([40.0, 45.0]),
        "avg": np.mean([85.0, 60.0, 70.0]),
        "residual": np.mean([85.0 - 40.0, 60.0 - 45.0]),
        "wc_acc": np.mean([40.0, 45.0, 70.0]),
        # At the switches: task 1; task 2 (task 1 is learned again); tasks 1 and 2.
        "gap_depth": np.mean([90.0 - 40.0, 80.0 - 55.0, 92.0 - 70.0, 65.0 - 45.0]),
        "forgetting": np.mean([92.0 - 85.0, 80.0 - 60.0]),
        "bwt": np.mean([85.0 - 90.0, 60.0 - 80.0]),
        "new_accuracy": np.mean([80.0, 70.0]),
        "aaa": np.mean([50, 90, 35, 70, 67.5, 78.5, 45, np.mean([85, 60, 70])]),
        "wf10": np.mean([90.0 - 40.0, 80.0 - 45.0, 0.0]),
    }


def test_a_task_that_returns_counts_once():
    values = measures(TASK, CURVES, order=ORDER)
    for key, value in expected().items():
        assert values[key] == pytest.approx(value), key


def test_a_return_is_no_gap_of_the_task_itself():
    found = {(gap.switch, gap.task) for gap in gaps(TASK, CURVES, order=ORDER)}
    assert found == {(2, 1), (4, 2), (6, 1), (6, 2)}


def test_min_and_avg_of_the_summary_are_the_measures():
    values = measures(TASK, CURVES, order=ORDER)
    assert average_minimum_accuracy(TASK, CURVES, ORDER) == values["min"]
    assert average_accuracy(CURVES[-1], ORDER) == values["avg"]


def test_a_return_at_the_end_leaves_every_task_with_a_minimum():
    values = measures(TASK[:6], CURVES[:6, :3], order=[1, 2, 1])
    assert values["min"] == np.mean([40.0, 55.0])
    assert values["wc_acc"] == values["min"]
    assert values["avg"] == np.mean([92.0, 65.0])


def test_an_order_without_returns_changes_nothing():
    usual = CURVES[:4, :2]
    assert measures(TASK[:4], usual) == measures(TASK[:4], usual, order=[2, 1])


def test_an_order_of_a_different_length_is_refused():
    with pytest.raises(UserError, match="the order has 3 tasks, and the curves have 4"):
        measures(TASK, CURVES, order=[1, 2, 1])
