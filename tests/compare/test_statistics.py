"""Paired tests of a family: worked by hand, against an independent oracle, and by simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

from twofold.compare.statistics import compare, holm


def test_a_comparison_by_hand() -> None:
    # 1, 2, 3: mean 2, deviation 1, standard error 1 / sqrt(3), so t = 2 sqrt(3), with 2 degrees
    # of freedom. There Student's distribution has a closed form: the two-sided p is
    # 1 - t / sqrt(2 + t^2), and the quantile of 0.975 is 0.95 sqrt(2 / (4 * 0.975 * 0.025)).
    (found,) = compare([[1, 2, 3]])
    t = 2 * math.sqrt(3)
    assert found.effect == 2
    assert found.p == pytest.approx(1 - t / math.sqrt(2 + t**2))
    assert found.p == pytest.approx(0.0742, abs=1e-4)
    assert found.p_corrected == found.p
    reach = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025)) / math.sqrt(3)
    assert found.interval == (pytest.approx(2 - reach), pytest.approx(2 + reach))


def test_two_comparisons_by_hand() -> None:
    # As above, but both intervals hold together: 1 - 0.05 / 4 = 0.9875 each way, and the quantile
    # is 0.975 sqrt(2 / (4 * 0.9875 * 0.0125)) = 6.2053.
    first, second = compare([[1, 2, 3], [2, 4, 6]])
    reach = 0.975 * math.sqrt(2 / (4 * 0.9875 * 0.0125)) / math.sqrt(3)
    assert first.interval == (pytest.approx(2 - reach), pytest.approx(2 + reach))
    assert second.interval == (pytest.approx(4 - 2 * reach), pytest.approx(4 + 2 * reach))
    assert first.p_corrected == pytest.approx(2 * first.p)


def test_holm_by_hand() -> None:
    # Sorted: 0.005 * 4, 0.01 * 3, 0.03 * 2, and 0.04 * 1, which must not be below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005], 4) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9], 2) == [1.0, 1.0]
    # One of the family has no p: it counts all the same.
    assert holm([0.01], 2) == [0.02]
    assert holm([], 0) == []


def t_density(x: float, df: int) -> float:
    scale = special.gamma((df + 1) / 2) / math.sqrt(df * math.pi) / special.gamma(df / 2)
    return float(scale * (1 + x * x / df) ** (-(df + 1) / 2))


differences = st.lists(
    st.floats(-50, 50).map(lambda x: round(x, 2)), min_size=3, max_size=8
).filter(lambda values: np.std(values) > 0.05)


@given(st.lists(differences, min_size=1, max_size=3))
def test_an_independent_oracle(family: list[list[float]]) -> None:
    """The t density, integrated: p is what lies beyond t, and the interval holds what it must."""
    for values, found in zip(family, compare(family), strict=True):
        df, error = len(values) - 1, np.std(values, ddof=1) / math.sqrt(len(values))
        within, _ = integrate.quad(
            t_density, 0, abs(np.mean(values)) / error, args=(df,), limit=200
        )
        assert found.p == pytest.approx(1 - 2 * within, abs=1e-6)
        low, high = found.interval
        assert (low + high) / 2 == pytest.approx(np.mean(values), abs=1e-9)
        held, _ = integrate.quad(t_density, 0, (high - low) / 2 / error, args=(df,), limit=200)
        assert 2 * held == pytest.approx(1 - 0.05 / len(family), abs=1e-6)


@given(differences, differences, st.randoms())
def test_order_and_sign_do_not_matter(one: list[float], other: list[float], random: Any) -> None:
    first, second = compare([one, other])
    shuffled = random.sample(one, len(one))
    again, mirrored = compare([shuffled, [-d for d in other]])
    assert again.effect == pytest.approx(first.effect, abs=1e-9)
    assert again.interval == pytest.approx(first.interval, abs=1e-6)
    assert mirrored.interval == pytest.approx((-second.interval[1], -second.interval[0]), abs=1e-6)
    assert mirrored.p_corrected == pytest.approx(second.p_corrected, abs=1e-9)


def test_the_intervals_hold_together_and_nothing_is_shown_where_there_is_nothing() -> None:
    """Simulated: four comparisons of five seeds with unlike spreads; true effects 0, 0, 1, 3."""
    random, true, spread = np.random.default_rng(0), (0.0, 0.0, 1.0, 3.0), (1.0, 3.0, 1.0, 2.0)
    families, covered, false = 1000, 0, 0
    for _ in range(families):
        found = compare([random.normal(t, s, 5) for t, s in zip(true, spread, strict=True)])
        covered += all(
            c.interval[0] <= t <= c.interval[1] for c, t in zip(found, true, strict=True)
        )
        false += any(c.p_corrected < 0.05 for c, t in zip(found, true, strict=True) if t == 0)
    # Bonferroni's intervals hold with at least 95%, for four independent ones with 95.1%; three
    # standard errors of that are 2% here. Holm's test errs in at most 5%.
    assert 0.951 - 0.02 < covered / families < 0.951 + 0.02
    assert false / families < 0.05 + 0.02
