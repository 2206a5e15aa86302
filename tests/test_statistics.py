"""The mean and its standard error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.statistics import mean_and_error, means_and_errors


def test_the_mean_and_its_standard_error() -> None:
    # 1, 2, 6: mean 3; deviations -2, -1, 3; variance 14 / 2 = 7; error sqrt(7 / 3).
    mean, error = mean_and_error([1, 2, 6])
    assert mean == 3
    assert error == pytest.approx(math.sqrt(7 / 3))
    # 90, 90, 96: mean 92; deviations -2, -2, 4; variance 24 / 2 = 12; error sqrt(12 / 3).
    assert mean_and_error([90, 90, 96]) == (92, pytest.approx(2))
    assert mean_and_error([5, 5, 5]) == (5, 0)
    assert mean_and_error([90, 94]) == (92, None)
    assert mean_and_error([93.6]) == (93.6, None)


@given(st.tuples(*[st.floats(0, 100)] * 3))
def test_two_values_have_a_mean_and_no_error_and_three_have_both(
    values: tuple[float, float, float],
) -> None:
    a, b, c = values
    assert mean_and_error([a, b]) == (pytest.approx((a + b) / 2), None)
    # Squared deviations of three values add up to a third of their squared distances.
    error = math.sqrt(((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2) / 3 / 2 / 3)
    assert mean_and_error([a, b, c]) == (
        pytest.approx((a + b + c) / 3),
        pytest.approx(error, abs=1e-9),
    )


def test_means_of_curves_are_those_of_their_points() -> None:
    table = np.array([[1.0, 90.0], [2.0, 94.0], [6.0, 92.0]])
    means, errors = means_and_errors(table)
    assert means.tolist() == [3, 92]
    assert errors.tolist() == [mean_and_error(column)[1] for column in table.T]
    for few in (1, 2):
        assert means_and_errors(table[:few])[1] is None
