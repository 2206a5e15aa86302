"""The mean and its standard error."""

from __future__ import annotations

import math

import pytest

from twofold.compare.statistics import mean_and_error


def test_the_mean_and_its_standard_error() -> None:
    # 1, 2, 6: mean 3; deviations -2, -1, 3; variance 14 / 2 = 7; error sqrt(7 / 3).
    mean, error = mean_and_error([1, 2, 6])
    assert mean == 3
    assert error == pytest.approx(math.sqrt(7 / 3))
    # Two values: half their distance.
    assert mean_and_error([90, 94]) == (92, pytest.approx(2))
    assert mean_and_error([5, 5, 5]) == (5, 0)
    assert mean_and_error([93.6]) == (93.6, None)
