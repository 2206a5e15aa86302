"""Thinning: whatever the curves, however few points are kept, no minimum is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twofold.evaluation.metrics import minimum_accuracies
from twofold.evaluation.trajectory import gaps
from twofold.report.page.thinning import DENSE, thin

nan = np.nan


@st.composite
def runs(draw):
    """Tasks of any length; a model that is evaluated at some iterations and at the end of tasks."""
    lengths = draw(st.lists(st.integers(1, 25), min_size=1, max_size=4))
    tasks = np.arange(1, len(lengths) + 1)
    learned = np.repeat(tasks, lengths)
    evaluated = draw(arrays(bool, len(learned)))
    evaluated[np.cumsum(lengths) - 1] = True
    of = draw(st.sampled_from([3, 10, 1000]))  # images: few, so that accuracies are often equal
    right = draw(arrays(np.int16, (len(learned), len(lengths)), elements=st.integers(0, of)))
    accuracy = right.astype(np.float32) * np.float32(100 / of)
    accuracy[~evaluated] = nan
    accuracy[learned[:, None] < tasks] = nan
    return learned, accuracy


def thinned(learned, accuracy, buckets, dense):
    """The same table with only what is kept."""
    table = np.full_like(accuracy, nan)
    for k, curve in enumerate(accuracy.T):
        rows = thin(learned, curve, buckets, dense)
        table[rows, k] = curve[rows]
    return table


@given(runs(), st.integers(0, 50), st.integers(0, 10))
def test_min_of_the_thinned_curve_is_min_of_the_full_one(run, buckets, dense):
    learned, accuracy = run
    less = thinned(learned, accuracy, buckets, dense)
    np.testing.assert_array_equal(
        minimum_accuracies(learned, less), minimum_accuracies(learned, accuracy)
    )


@given(runs(), st.integers(0, 50), st.integers(0, 10))
def test_gaps_are_as_deep_and_lowest_at_the_same_iteration(run, buckets, dense):
    learned, accuracy = run
    less = thinned(learned, accuracy, buckets, dense)
    assert [(gap.switch, gap.task, gap.depth, gap.lowest_at) for gap in gaps(learned, less)] == [
        (gap.switch, gap.task, gap.depth, gap.lowest_at) for gap in gaps(learned, accuracy)
    ]


@given(runs(), st.integers(0, 50), st.integers(0, 10))
def test_points_are_real_ones_in_order_with_both_ends_of_each_segment_and_not_too_many(
    run, buckets, dense
):
    learned, accuracy = run
    for curve in accuracy.T:
        rows = thin(learned, curve, buckets, dense)
        assert not np.isnan(curve[rows]).any()
        assert (np.diff(rows) > 0).all()
        segments = [
            np.flatnonzero((learned == task) & ~np.isnan(curve)) for task in np.unique(learned)
        ]
        for own in filter(len, segments):
            assert {*own[:dense], own[0], own[-1]} <= {*rows}
            assert curve[own].max() in curve[np.intersect1d(own, rows)]
        assert len(rows) <= sum(dense + 4 + 3 for own in segments) + 2 * buckets


def test_a_worked_example():
    """Two tasks of eight; three buckets a task, of three, three and two points; one dense one."""
    learned = np.repeat([1, 2], 8)
    first = [10.0, 20, 30, 25, 40, 35, 50, 60]
    then = [55.0, 30, 45, nan, 45, 44, 46, 58]  # seven: buckets of three, three and one
    rows = thin(learned, np.array(first + then), buckets=6, dense=1)
    assert rows.tolist() == [0, 2, 3, 4, 6, 7, 8, 9, 13, 14, 15]


def test_a_curve_that_was_never_evaluated_has_no_points():
    assert len(thin(np.array([1, 1]), np.array([nan, nan]), 5)) == 0


@pytest.mark.parametrize("deepest", [0, DENSE, 5000, 5999])
def test_a_long_run_keeps_a_spike_wherever_it_is_and_little_else(deepest):
    learned = np.repeat([1, 2, 3], 6000)
    accuracy = np.random.default_rng(0).uniform(80, 90, 18000).astype(np.float32)
    accuracy[6000 + deepest] = 12.5
    rows = thin(learned, accuracy, buckets=300)
    assert accuracy[rows].min() == 12.5
    assert len(rows) < 2 * 300 + 3 * (DENSE + 2)
    assert {*range(6000, 6000 + DENSE)} <= {*rows.tolist()}
