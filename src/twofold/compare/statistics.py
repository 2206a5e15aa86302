"""Paired tests of a whole family of comparisons.

The more comparisons, the more of them look like an effect by chance. All comparisons of a family
are therefore corrected together: p values by Holm's method, and intervals by Bonferroni's, so that
they all hold together with 95%.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scipy import stats

from twofold.statistics import mean_and_error

LEVEL = 0.95
FEWEST = 3  # pairs: with fewer, any spread is compatible with them
NOTHING = 1e-6  # points: far below one image, so rounding


class Comparison(NamedTuple):
    """The mean of paired differences, tested as one comparison of a family."""

    effect: float
    interval: tuple[float, float] | None  # None if there is nothing to compute it from
    p: float | None
    p_corrected: float | None


def compare(family: Sequence[Sequence[float]]) -> list[Comparison]:
    """Return paired t tests and intervals for all comparisons of a family together."""
    testable = sum(len(values) >= FEWEST for values in family)
    tests = [_test(values, testable) for values in family]
    corrected = iter(holm([test.p for test in tests if test.p is not None], testable))
    return [t if t.p is None else t._replace(p_corrected=next(corrected)) for t in tests]


def _test(values: Sequence[float], family: int) -> Comparison:
    count = len(values)
    mean, error = mean_and_error(values)
    if count < FEWEST or not error or error < NOTHING:  # no spread: nothing to measure by
        return Comparison(mean, None, None, None)
    p = 2 * float(stats.t.sf(abs(mean) / error, count - 1))
    reach = error * float(stats.t.ppf(1 - (1 - LEVEL) / 2 / family, count - 1))
    return Comparison(mean, (mean - reach, mean + reach), p, None)


def holm(ps: Sequence[float], family: int) -> list[float]:
    """Correct p values by Holm's method: the k-th smallest times the number of comparisons left,
    and never below a smaller one.
    """
    corrected, highest = [1.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda k: ps[k])):
        highest = max(highest, min(1.0, (family - rank) * ps[place]))
        corrected[place] = highest
    return corrected
