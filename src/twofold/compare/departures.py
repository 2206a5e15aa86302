"""Departures: the effects of deviating from a paper's text, one at a time or several together.

A group with departures is compared with the group that follows the text in all of them and is the
same in everything else, paired by seed as for verdicts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from twofold.compare.groups import Group, paired_differences
from twofold.compare.reductions import Reductions, remarks_on
from twofold.compare.shared import stores_some
from twofold.compare.shelf import Setting, Shelf, essence, preference
from twofold.compare.statistics import Comparison, Interval, compare
from twofold.experiments.config import Config
from twofold.experiments.profiles import Departure, departures

METRICS = ("min", "avg")
LIMITS = (
    "effect: departures minus text in points, the mean over the seeds that both have. No study "
    "declares these comparisons, so they are exploratory, and no evidence. All effects on a metric "
    "are one family. The simultaneous intervals hold all together with 95% "
    "(Bonferroni), and p is corrected in the same way. With fewer than three seeds there is "
    "neither. The difference of two bounds (≤) is rough.",
)


@dataclass(frozen=True)
class Effect:
    """The effect of departures on one metric of one method."""

    departures: tuple[str, ...]  # in force
    benchmark: str
    mode: str
    method: str  # according to the text
    lr: float
    batch_size: int
    metric: str
    text: float  # means over the seeds that both have
    code: float
    seeds: tuple[int, ...]
    effect: float
    interval: Interval | None  # simultaneous
    uncorrected: Interval | None
    p: float | None
    p_corrected: float | None
    bound: str  # how MIN was evaluated, if it is an upper bound
    remarks: tuple[str, ...]  # how the runs are smaller than full ones
    comparable: bool  # whether the numbers mean the same as a reference (MIN perhaps as a bound)
    commands: tuple[str | None, str | None]


class Pair(NamedTuple):
    """Two groups that differ only in departures."""

    text: Group
    code: Group

    def differences(self, metric: str) -> dict[int, float]:
        return paired_differences(self.text, self.code, metric)


def in_force(config: Config) -> dict[str, Departure]:
    """Return the departures that a configuration has, by name."""
    return {name: d for name, d in departures().items() if d.code in _values(config, d)}


def by_the_text(config: Config) -> Config:
    """Return the same without any departure."""
    general = [each for each in departures().values() if not each.components]
    fields = {d.option: d.text for d in general if getattr(config, d.option) == d.code}
    components = [(name, _by_the_text(name, options)) for name, options in config.components]
    return dataclasses.replace(config, components=components, **fields)


def _by_the_text(component: str, options: dict[str, Any]) -> dict[str, Any]:
    changes = [each for each in departures().values() if component in each.components]
    return {**options, **{d.option: d.text for d in changes if options.get(d.option) == d.code}}


def _values(config: Config, departure: Departure) -> set[Any]:
    """Return the values of a departure's option, without those that have no effect."""
    if departure.components:
        named = [options for name, options in config.components if name in departure.components]
        return {options.get(departure.option) for options in named}
    if departure.option == "memory_grouping" and not _has_a_quota(config):
        return set()
    return {getattr(config, departure.option)}


def _has_a_quota(config: Config) -> bool:
    """Return whether the method has a memory with such a quota."""
    return not config.memory and stores_some(config)


def effects(groups: Sequence[Group]) -> list[Effect]:
    """Return the effects of departures for all groups that have a partner without departures."""
    pairs = _pairs(groups)
    all_effects = []
    for metric in METRICS:
        complete_pairs = [pair for pair in pairs if pair.differences(metric)]
        results = compare([list(pair.differences(metric).values()) for pair in complete_pairs])
        all_effects += [
            _effect(pair, metric, result)
            for pair, result in zip(complete_pairs, results, strict=True)
        ]
    return sorted(all_effects, key=_order)


def _order(effect: Effect) -> tuple[Any, ...]:
    metric = METRICS.index(effect.metric)
    setting = Setting(effect.lr, effect.batch_size)
    return effect.benchmark, effect.mode, setting, effect.method, effect.departures, metric


def _pairs(groups: Sequence[Group]) -> list[Pair]:
    shelved = sorted(Shelf(groups).groups(), key=preference, reverse=True)  # the best come last
    text = {_same(group.config): group for group in shelved if not in_force(group.config)}
    code = [group for group in shelved if in_force(group.config)]
    pairs = [Pair(text[_same(g.config)], g) for g in code if _same(g.config) in text]
    best = {(essence(p.code.config), Setting.of(p.code.config)): p for p in pairs}
    return list(best.values())


def _same(config: Config) -> str:
    return essence(by_the_text(config), apart=("eval_precision",))


def _effect(pair: Pair, metric: str, result: Comparison) -> Effect:
    config, seeds = pair.code.config, tuple(pair.differences(metric))
    reductions = Reductions.of(pair.code)
    text, code = (sum(group.by_seed(metric)[s] for s in seeds) / len(seeds) for group in pair)
    return Effect(
        tuple(in_force(config)),
        config.benchmark,
        config.mode,
        pair.text.config.method,
        config.lr,
        config.batch_size,
        metric,
        text,
        code,
        seeds,
        result.effect,
        result.interval,
        result.uncorrected,
        result.p,
        result.p_corrected,
        bound=reductions.bound(metric),
        remarks=remarks_on(pair, metric),
        comparable=all(Reductions.of(group).comparable(metric) for group in pair),
        commands=(pair.text.command(), pair.code.command()),
    )


def explained(found: Sequence[Effect]) -> list[str]:
    """Return what the departures are, and how the runs are smaller than full ones."""
    named = {name for each in found for name in each.departures}
    words = [f"{name}: {each.words}." for name, each in departures().items() if name in named]
    limits: dict[tuple[str, str], dict[str, None]] = {}  # places by metric and limit
    for each in found:
        place = f"{each.benchmark} {each.mode}"
        if each.bound:
            bound = f"is an upper bound (≤), {each.bound} only"
            limits.setdefault((each.metric, bound), {})[place] = None
        if each.remarks:
            smaller = f"differs from the reference runs: {', '.join(each.remarks)}"
            limits.setdefault((each.metric, smaller), {})[place] = None
    return words + [
        f"{metric.upper()} of {' and '.join(places)} {limit}."
        for (metric, limit), places in limits.items()
    ]
