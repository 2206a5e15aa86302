"""The mean and its standard error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twofold.statistics import mean_and_error, means_and_errors


def test_the_mean_and_its_standard_error() -> None:
    # 1, 2, 6: mean 3; deviations -2, -1, 3; variance 14 / 2 = 7; error sqrt(7 / 3).
    mean, error = mean_and_error([1, 2, 6])
    assert mean == 3
    assert error == pytest.approx(math.sqrt(7 / 3))
    # Two values: half their distance.
    assert mean_and_error([90, 94]) == (92, pytest.approx(2))
    assert mean_and_error([5, 5, 5]) == (5, 0)
    assert mean_and_error([93.6]) == (93.6, None)


def test_means_of_curves_are_those_of_their_points() -> None:
    table = np.array([[1.0, 90.0], [2.0, 94.0], [6.0, 92.0]])
    means, errors = means_and_errors(table)
    assert means.tolist() == [3, 92]
    assert errors.tolist() == [mean_and_error(column)[1] for column in table.T]
    assert means_and_errors(table[:1])[1] is None
