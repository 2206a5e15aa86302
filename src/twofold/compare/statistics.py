"""Paired comparisons of a family: intervals, decisions, and what it takes to decide.

A comparison is a mean of n differences with deviation s, and a family has m comparisons. Each has a
simultaneous interval, mean ± t(1 - 5% / 2m, n - 1) s / √n; all m of them hold together with at
least 95% (Bonferroni). This interval decides:

    effect       it does not contain 0
    equivalent   it contains 0 and lies within ± margin: two one-sided tests, each at 2.5% / m
    undecided    everything else

So interval, corrected p and decision always agree, and all decisions of a family are right together
with at least 95%. `chance` is the probability of a decision, from which the detectable effect and
the number of seeds follow.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from twofold.statistics import FEWEST, mean_and_error

LEVEL = 0.95
ERROR = 1 - LEVEL
POWER = 0.8
MOST = 1000  # seeds that are considered
NOTHING = 1e-4  # points: far below one image, so rounding
NODES = 2000  # of the integral over the spread

Outcome = Literal["effect", "equivalent", "undecided"]
Interval = tuple[float, float]


class Comparison(NamedTuple):
    """The mean of paired differences, as one comparison of a family."""

    effect: float
    outcome: Outcome = "undecided"
    interval: Interval | None = None  # simultaneous; None if there is nothing to compute it from
    uncorrected: Interval | None = None  # of this comparison alone
    p: float | None = None
    p_corrected: float | None = None
    p_equivalent: float | None = None  # corrected; None without a margin
    detectable: float | None = None  # the effect that as many seeds show with 80% power
    # Seeds that decide with 80% probability; MOST + 1 stands for more than MOST.
    seeds_needed: int | None = None  # if effect and spread are as they look
    seeds_at_most: int | None = None  # whatever the effect is; None without a margin


def compare(
    family: Sequence[Sequence[float]], margin: float | None = None, size: int | None = None
) -> list[Comparison]:
    """Return the comparisons of a family.

    margin: the largest difference that counts as none; without it, nothing is equivalent.
    size: the number of comparisons to correct for, if it is not the number that can be tested.
    """
    testable = sum(len(values) >= FEWEST for values in family)
    return [_compared(values, margin, size or testable) for values in family]


def _compared(values: Sequence[float], margin: float | None, family: int) -> Comparison:
    count = len(values)
    mean, error = mean_and_error(values)
    if count < FEWEST or error is None:
        return Comparison(mean)
    if error < NOTHING:  # no spread to measure by
        return Comparison(mean, "equivalent" if abs(mean) < NOTHING else "undecided")
    p = 2 * float(special.stdtr(count - 1, -abs(mean) / error))
    simultaneous = _interval(mean, error, count, family)
    outcome = _outcome(simultaneous, margin)
    comparison = Comparison(
        mean,
        outcome,
        simultaneous,
        _interval(mean, error, count, 1),
        p,
        min(1.0, family * p),
        None if margin is None else _p_equivalent(mean, error, count, family, margin),
    )
    if outcome != "undecided":
        return comparison
    spread = error * math.sqrt(count)
    return comparison._replace(
        detectable=detectable(values, family),
        seeds_needed=seeds_needed(mean, spread, family, margin or 0.0),
        seeds_at_most=None if margin is None else seeds_at_most(spread, family, margin),
    )


def _interval(mean: float, error: float, count: int, family: int) -> Interval:
    reach = quantile(count, family) * error
    return mean - reach, mean + reach


def _outcome(interval: Interval, margin: float | None) -> Outcome:
    low, high = interval
    if not low <= 0 <= high:
        return "effect"
    return "equivalent" if margin is not None and -margin <= low and high <= margin else "undecided"


def _p_equivalent(mean: float, error: float, count: int, family: int, margin: float) -> float:
    """Return the larger p of two one-sided tests, doubled since each is at 2.5%, and corrected."""
    larger = float(special.stdtr(count - 1, (abs(mean) - margin) / error))
    return min(1.0, 2 * family * larger)


# What it takes to decide


def chance(effect: float, spread: float, count: int, family: int, margin: float = 0.0) -> float:
    """Return the probability that a comparison is decided; without a margin, its power.

    effect, spread: the true mean and deviation of the differences.
    """
    error = spread / math.sqrt(count)
    reach = quantile(count, family) * error * _deviations(count)

    def within(limit: NDArray[Any]) -> NDArray[Any]:  # the mean lies between -limit and limit
        low, high = ((end - effect) / error for end in (-limit, limit))
        return np.maximum(special.ndtr(high) - special.ndtr(low), 0)  # normal probabilities

    return float(np.mean(1 - within(reach) + within(np.minimum(reach, margin - reach))))


def seeds_needed(effect: float, spread: float, family: int, margin: float = 0.0) -> int:
    """Return the smallest number of seeds that decides with 80% probability, up to MOST + 1."""
    return _fewest(lambda count: chance(effect, spread, count, family, margin))


def seeds_at_most(spread: float, family: int, margin: float) -> int:
    """Return the number of seeds that decides with 80% probability whatever the effect is.

    An interval no longer than the margin either excludes 0 or lies within ± margin.
    """

    def short(count: int) -> float:
        ratio = margin / 2 / (quantile(count, family) * spread / math.sqrt(count))
        return float(special.chdtr(count - 1, (count - 1) * ratio**2))

    return _fewest(short)


def _fewest(probability: Callable[[int], float]) -> int:
    counts = range(FEWEST, MOST + 1)
    return FEWEST + bisect_left(counts, POWER, key=probability)


def detectable(values: Sequence[float], family: int) -> float | None:
    """Return the effect that as many seeds show with 80% power; None without any spread."""
    _, error = mean_and_error(values)
    if len(values) < FEWEST or error is None or error < NOTHING:
        return None
    return error * math.sqrt(len(values)) * _detectable(len(values), family)


@cache
def _detectable(count: int, family: int) -> float:
    """Return the effect that shows with 80% power, as a multiple of the spread."""
    high = 10 * quantile(count, family)
    return float(optimize.brentq(lambda effect: chance(effect, 1, count, family) - POWER, 0, high))


@cache
def quantile(count: int, family: int) -> float:
    """Return how many standard errors a simultaneous interval reaches to each side."""
    return float(special.stdtrit(count - 1, 1 - ERROR / 2 / family))


@cache
def _deviations(count: int) -> NDArray[Any]:
    """Return deviations of samples, relative to the true one, at equally probable nodes."""
    shares = (np.arange(NODES) + 0.5) / NODES
    return np.sqrt(special.chdtri(count - 1, 1 - shares) / (count - 1))
