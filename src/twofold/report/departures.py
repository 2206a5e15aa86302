"""What the authors' departures from the paper's text do: D1 and the rest, alone or together.

A cell made with departures is compared with the cell that follows the text in all of them and is
the same in everything else, paired by seed, as verdicts are.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from twofold.errors import UserError, unknown
from twofold.experiments.config import Config
from twofold.experiments.profiles import DEPARTURES, Departure
from twofold.method import uses_memory
from twofold.report.cells import Cell, paired_differences
from twofold.report.selection import (
    Reductions,
    Setting,
    Shelf,
    essence,
    preference,
    remarks_on,
)
from twofold.report.text import EMPTY, csv_text, markdown_table, p_text, signed, value_text
from twofold.report.verdicts import Comparison, compare

METRICS = ("min", "avg")
LIMITS = (
    "effect: departures minus text in points, the mean over seeds that both have. All effects on "
    "a metric are one family: p is corrected by Holm's method, and the intervals, by Bonferroni's, "
    "hold all together with 95%. With fewer than three seeds there is neither.",
)


@dataclass(frozen=True)
class Effect:
    """What departures do to one method, by one metric."""

    departures: tuple[str, ...]  # in force
    benchmark: str
    mode: str
    method: str  # as the text has it
    lr: float
    batch_size: int
    metric: str
    text: float  # means over the seeds that both have
    code: float
    seeds: tuple[int, ...]
    effect: float
    interval: tuple[float, float] | None
    p: float | None
    p_corrected: float | None
    bound: str  # how MIN was judged, where it is an upper bound
    remarks: tuple[str, ...]  # how the runs are smaller than the paper's
    comparable: bool  # whether the numbers mean what the paper's means (MIN perhaps as a bound)
    commands: tuple[str | None, str | None]


class Pair(NamedTuple):
    """Two cells that differ in nothing but departures."""

    text: Cell
    code: Cell

    def differences(self, metric: str) -> dict[int, float]:
        return paired_differences(self.text, self.code, metric)


def in_force(config: Config) -> list[Departure]:
    """The departures that a configuration has."""
    return [each for each in DEPARTURES if each.code in _values(config, each)]


def by_the_text(config: Config) -> Config:
    """The same without any departure."""
    own = [each for each in DEPARTURES if not each.components]
    fields = {d.option: d.text for d in own if getattr(config, d.option) == d.code}
    components = [(name, _by_the_text(name, options)) for name, options in config.components]
    return dataclasses.replace(config, components=components, **fields)


def _by_the_text(component: str, options: dict[str, Any]) -> dict[str, Any]:
    own = [each for each in DEPARTURES if component in each.components]
    return {**options, **{d.option: d.text for d in own if options[d.option] == d.code}}


def _values(config: Config, departure: Departure) -> set[Any]:
    """What a departure's option is set to, where it does something."""
    if departure.components:
        named = [options for name, options in config.components if name in departure.components]
        return {options[departure.option] for options in named}
    if departure.option == "memory_grouping" and not _has_a_quota(config):
        return set()
    return {getattr(config, departure.option)}


def _has_a_quota(config: Config) -> bool:
    """Whether the method has a memory, and not one that takes all."""
    try:
        objective, routines = config.make_components()
    except UserError:  # a component that is not at hand
        return True
    return uses_memory(objective, routines) and not objective.stores_all


def effects(cells: Sequence[Cell]) -> list[Effect]:
    """Of all cells with departures that have one beside them without."""
    pairs = _pairs(cells)
    found = []
    for metric in METRICS:
        told = [pair for pair in pairs if pair.differences(metric)]
        results = compare([list(pair.differences(metric).values()) for pair in told])
        found += [_effect(pair, metric, result) for pair, result in zip(told, results, strict=True)]
    return sorted(found, key=_place)


def _place(effect: Effect) -> tuple[Any, ...]:
    order = METRICS.index(effect.metric)
    setting = Setting(effect.lr, effect.batch_size)
    return effect.benchmark, effect.mode, setting, effect.method, effect.departures, order


def _pairs(cells: Sequence[Cell]) -> list[Pair]:
    """By the text, and departing from it."""
    shelved = sorted(Shelf(cells).cells(), key=preference, reverse=True)  # the best come last
    text = {_same(cell.config): cell for cell in shelved if not in_force(cell.config)}
    code = [cell for cell in shelved if in_force(cell.config)]
    pairs = [Pair(text[_same(c.config)], c) for c in code if _same(c.config) in text]
    best = {(essence(p.code.config), Setting.of(p.code.config)): p for p in pairs}
    return list(best.values())


def _same(config: Config) -> str:
    return essence(by_the_text(config), apart=("eval_precision",))


def _effect(pair: Pair, metric: str, result: Comparison) -> Effect:
    config, seeds = pair.code.config, tuple(pair.differences(metric))
    less = Reductions.of(pair.code)
    text, code = (sum(cell.by_seed(metric)[seed] for seed in seeds) / len(seeds) for cell in pair)
    return Effect(
        tuple(each.name for each in in_force(config)),
        config.benchmark,
        config.mode,
        pair.text.config.method,
        config.lr,
        config.batch_size,
        metric,
        text,
        code,
        seeds,
        **result._asdict(),
        bound=less.schedule if metric == "min" else "",
        remarks=remarks_on(pair, metric),
        comparable=all(Reductions.of(cell).comparable(metric) for cell in pair),
        commands=(pair.text.command(), pair.code.command()),
    )


def render(found: Sequence[Effect], format: str = "md") -> str:
    """As text: md, csv or json."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](found)


def _markdown(found: Sequence[Effect]) -> str:
    head = ["departures", "benchmark", "mode", "LR", "BS", "method", "metric", "text", "code"]
    lines = [[*head, "seeds", "effect", "interval", "p", "corrected p"]]
    for each in found:
        sign = "≤ " if each.bound else ""
        means = [f"{sign}{value_text(mean, None)}" for mean in (each.text, each.code)]
        interval = " to ".join(signed(end) for end in each.interval or ())
        where = [", ".join(each.departures), each.benchmark, each.mode]
        where += [f"{each.lr:g}", f"{each.batch_size}", each.method]
        judged = [interval or EMPTY, p_text(each.p), p_text(each.p_corrected)]
        counted = [*means, f"{len(each.seeds)}", signed(each.effect)]
        lines.append([*where, each.metric.upper(), *counted, *judged])
    said = "\n".join(f"- {text}" for text in (*explained(found), *LIMITS))
    return f"{markdown_table(lines, left=7)}\n\n{said}\n"


def explained(found: Sequence[Effect]) -> list[str]:
    """What the departures are, and what there is to say of the runs."""
    named = {name for each in found for name in each.departures}
    words = [f"{each.name}: {each.words}." for each in DEPARTURES if each.name in named]
    said: dict[tuple[str, str], dict[str, None]] = {}  # of a metric: where
    for each in found:
        where = f"{each.benchmark} {each.mode}"
        if each.bound:
            bound = f"an upper bound (≤), {each.bound} only"
            said.setdefault((each.metric, bound), {})[where] = None
        if each.remarks:
            smaller = f"not the paper's: {', '.join(each.remarks)}"
            said.setdefault((each.metric, smaller), {})[where] = None
    limits = [
        f"{metric.upper()} of {' and '.join(places)} is {text}."
        for (metric, text), places in said.items()
    ]
    return [*words, *limits]


def _json(found: Sequence[Effect]) -> str:
    return json.dumps([dataclasses.asdict(each) for each in found], indent=2) + "\n"


def _csv(found: Sequence[Effect]) -> str:
    return csv_text(Effect, found)


FORMATS = {"md": _markdown, "csv": _csv, "json": _json}
