"""What the runs of a store decide about a statement of the paper, in words with numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from twofold import Store
from twofold.compare.asked import SIGNS
from twofold.compare.groups import Group, groups, paired_differences
from twofold.compare.reductions import Reductions
from twofold.compare.reference import printed
from twofold.compare.statistics import MOST, Comparison, Interval, compare
from twofold.compare.verdicts import Verdict, verdicts
from twofold.evaluation.measures import MEASURES
from twofold.statistics import FEWEST, mean_and_error
from twofold.text import counted, interval_text, signed, value_text

STORES = Path(__file__).resolve().parent / "runs"
MNIST, DOMAIN, SPLIT = "rotated-mnist", "domain-cifar100", "split-cifar100"
MARGINS = {"min": 1.0, "avg": 0.5}  # of the studies

SECTIONS = {  # of the appendix, with the verdicts on new seeds
    "confirmation": "new-seeds",
    "confirmation_er": "a-second-round",
    "confirmation_gamma": "the-γ-study-again",
    "confirmation_gamma_small": "the-γ-study-again",
}

Claim = Literal["raises", "lowers", "nothing", "not raises"]  # what the paper states


@cache
def stored(store: str) -> Sequence[Group]:
    return groups(Store(STORES / store).runs())


def address(group: Group) -> tuple[str, str, str, str]:
    config = group.config
    return config.benchmark, config.mode, config.profile, config.method


class Place(NamedTuple):
    """A benchmark, mode and profile, and the store whose runs count there."""

    store: str
    benchmark: str = MNIST
    mode: str = "offline"
    profile: str = "paper"

    def group(self, method: str) -> Group:
        """Return the runs of a method, one per seed."""
        found = [g for g in stored(self.store) if address(g) == (*self[1:], method)]
        if len(found) != 1:
            raise SystemExit(f"{method} has {len(found)} settings instead of one in {self}")
        return found[0]

    def means(self, metric: str, *methods: str) -> str:
        return means(metric, *map(self.group, methods))

    def paper(self, metric: str, *methods: str) -> str:
        """Return the numbers of the paper for the same settings."""
        numbers = [_in_the_paper(self.group(method), metric) for method in methods]
        return f"The paper has {listed(numbers)}"

    @property
    def table(self) -> str:
        """The section with the verdicts on this store."""
        return f"appendix.md#{SECTIONS.get(self.store, 'the-hypotheses-with-equal-memory')}"


# Numbers


def means(metric: str, *compared: Group) -> str:
    """Return `93.7 ± 0.1 and 93.9 ± 0.1 (24 seeds)`, over the seeds that all groups have."""
    by_seed = [group.by_seed(metric) for group in compared]
    seeds = sorted(set.intersection(*map(set, by_seed)))
    if not seeds:
        raise SystemExit(f"no seeds with {metric} in common")
    texts = [
        bound(group, metric) + mean([values[seed] for seed in seeds])
        for group, values in zip(compared, by_seed, strict=True)
    ]
    return f"{listed(texts)} ({counted(len(seeds), 'seed')})"


def mean(values: Sequence[float]) -> str:
    """Return the mean ± standard error; the mean alone if the seeds are too few for an error."""
    return value_text(*mean_and_error(values))


def bound(group: Group, metric: str) -> str:
    """Return `≤ ` or `≥ ` if evaluations were left out and the number is only a bound."""
    thinned = MEASURES[metric.rpartition(".")[2]].thinned
    return SIGNS[thinned] if Reductions.of(group).bound(metric) else ""


def listed(texts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _in_the_paper(group: Group, metric: str) -> str:
    c = group.config
    number = printed(c.benchmark, c.mode, c.method, metric, c.lr, c.batch_size)
    if number is None:
        raise SystemExit(f"the paper has no {metric} of {c.method}")
    return value_text(*number)


def projections(method: str, place: Place) -> str:
    """Return in how many of the runs a gradient was projected."""
    found = [group for store in ("replication", "checks") for group in stored(store)]
    runs = [run for g in found if address(g) == (*place[1:], method) for run in g.runs]
    acted = sum(bool(run.columns["projected"].any()) for run in runs)
    return f"{acted} of {len(runs)}"


# Decisions


class Words(NamedTuple):
    yes: str
    no: str
    kind: str = ""


PRIMARY = Words("holds", "does not hold")
EXPLORATORY = Words("suggested", "not suggested", " (exploratory)")


class Difference(NamedTuple):
    """A difference that no study declares as primary: `other` minus `one`, paired by seed."""

    claim: Claim
    metric: str
    subject: str
    one: Group
    other: Group


@cache
def reached(store: str) -> list[Verdict]:
    return [verdict for verdict in verdicts(stored(store)) if verdict.study]


def primary(claim: Claim, metric: str, method: str, place: Place, where: str = "") -> str:
    """Return what a primary comparison decides: a method against its objective alone.

    where: words that tell apart the comparisons of a finding.
    """
    key = (metric, method, place.benchmark, place.mode, place.profile)
    (verdict,) = [
        v
        for v in reached(place.store)
        if (v.metric, f"{v.objective}+{v.routine}", v.benchmark, v.mode, v.profile) == key
    ]
    result = Comparison(**{name: getattr(verdict, name) for name in Comparison._fields})
    margin = verdict.margin if verdict.margin is not None else MARGINS[metric]
    verdict_text = decided(claim, result, len(verdict.seeds), margin)
    return sentence(verdict_text, metric.upper() + where, result, len(verdict.seeds))


def explored(differences: Mapping[str, Difference]) -> dict[str, str]:
    """Return what exploratory comparisons suggest; all of a metric are one family."""
    found = {}
    for metric, margin in MARGINS.items():
        family = {name: each for name, each in differences.items() if each.metric == metric}
        pairs = [[*paired_differences(e.one, e.other, metric).values()] for e in family.values()]
        results = compare(pairs, margin, len(family))
        for (name, each), pair, result in zip(family.items(), pairs, results, strict=True):
            verdict = decided(each.claim, result, len(pair), margin, EXPLORATORY)
            found[name] = sentence(verdict, each.subject, result, len(pair))
    return found


def sentence(verdict: str, subject: str, result: Comparison, seeds: int) -> str:
    change = f"{subject} changes by {signed(result.effect, 2)}"
    allowed = f" ({interval_text(result.interval, 2)})" if result.interval else ""
    return f"**{verdict[0].upper()}{verdict[1:]}**: {change}{allowed} over {counted(seeds, 'seed')}"


def decided(
    claim: Claim, result: Comparison, seeds: int, margin: float, words: Words = PRIMARY
) -> str:
    """Return whether a claim holds, or how many seeds it needs.

    A difference within the margin is too small to matter, whatever was claimed, and the words say
    whether these seeds show it.
    """
    if seeds < FEWEST:
        return f"too few seeds{words.kind}"
    label = _LABELS[claim](_interval(result), margin, words)
    return (label or _needed(result)) + words.kind


def _interval(result: Comparison) -> Interval:
    """Return the simultaneous interval; without any spread, nothing is known but equality."""
    if result.interval is not None:
        return result.interval
    return (0.0, 0.0) if result.outcome == "equivalent" else (-math.inf, math.inf)


def _raises(interval: Interval, margin: float, words: Words) -> str | None:
    low, high = interval
    if high < 0:
        return words.no
    holds = words.yes + _beside(low, margin) if low > 0 else None
    return _small(interval, margin) or holds


def _lowers(interval: Interval, margin: float, words: Words) -> str | None:
    low, high = interval
    return _raises((-high, -low), margin, words)


def _nothing(interval: Interval, margin: float, words: Words) -> str | None:
    low, high = interval
    nearest = max(low, -high)  # the end that is nearer to 0; negative if the interval contains 0
    fails = words.no + _beside(nearest, margin) if nearest > 0 else None
    return _small(interval, margin) or fails


def _not_raises(interval: Interval, margin: float, words: Words) -> str | None:
    low, high = interval
    if high <= 0:
        return words.yes
    if high <= margin:
        return _small(interval, margin) or f"no rise as large as {counted(margin, 'point')}"
    return words.no + _beside(low, margin) if low > 0 else None


def _small(interval: Interval, margin: float) -> str | None:
    """Return the same words whatever the claim is, if the interval lies within the margin."""
    low, high = interval
    if low < -margin or high > margin:
        return None
    shows = low > 0 or high < 0
    size = "an effect of less than" if shows else "no effect as large as"
    return f"{size} {counted(margin, 'point')}"


def _beside(low: float, margin: float) -> str:
    """Return words on an effect whose interval, beyond 0, begins within the margin."""
    return f", perhaps by less than {counted(margin, 'point')}" if low <= margin else ""


_LABELS = {"raises": _raises, "lowers": _lowers, "nothing": _nothing, "not raises": _not_raises}


def _needed(result: Comparison) -> str:
    """Return the number of new seeds; without any spread, there is none."""
    if result.seeds_needed is None:
        return "needs more seeds"
    more = f"more than {MOST:,}" if result.seeds_needed > MOST else f"{result.seeds_needed}"
    return f"needs {more} new seeds"
