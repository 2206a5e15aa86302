"""The table of a store, whatever trained its runs: a row per group, and a column per setting that
varies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions, changed_plugins
from twofold.compare.shared import TUNED, shared_words, stores_some
from twofold.compare.shelf import Setting
from twofold.component import plain
from twofold.errors import unknown
from twofold.evaluation.measures import MEASURES
from twofold.experiments.config import Config, own_settings, varying
from twofold.options import Option, options
from twofold.report.tables.layouts import Layout, Metric, all_metrics, find_metric
from twofold.report.tables.model import Block, Number, Place, Row, Section, StudyTable, title_of
from twofold.text import EMPTY, counted

NAME = "runs"
TITLE = "All methods and settings"
USUAL = ("min", "avg", "residual", "gap_depth", "recovery")  # unless metrics are named
PLACE = ("benchmark", "mode")  # of a block, in its title
SEEDS = "seeds"

Key = Callable[[Group], Any]


def store_table(
    groups: Sequence[Group], metrics: Sequence[str] = (), sort: Sequence[str] = ()
) -> StudyTable:
    """Return the table of these groups: a block per benchmark and mode, a row per group.

    metrics: names of measures, such as `min` and `gap_depth`.
    sort: columns by which rows are sorted, such as `avg` (the best first), `-avg` (the worst first)
        or `lr`. By default, rows are sorted by objective, plain methods first.
    """
    shown = tuple(find_metric(name) for name in metrics or USUAL)
    layout = Layout("", TITLE, metrics=shown, setting="all", transposed=True)
    ordered = _sorted(groups, sort)
    places: dict[Place, list[Group]] = {}
    for group in ordered:
        config = group.config
        places.setdefault(Place(config.benchmark, config.mode), []).append(group)
    blocks = tuple(_block(place, places[place], layout) for place in sorted(places))
    return StudyTable(NAME, layout, "", [], blocks, {}, [])


def _block(place: Place, groups: Sequence[Group], layout: Layout) -> Block:
    columns = _heads(groups)
    rows = tuple(
        Row(
            tuple(text(group) for text in columns.values()),
            tuple(_number(place, group, metric) for metric in layout.metrics),
        )
        for group in groups
    )
    labels = tuple(metric.label for metric in layout.metrics)
    return Block(
        f"{title_of(place.benchmark)}, {place.mode}",
        tuple(columns),
        labels,
        (len(labels),),
        rows,
        about=_about(groups, "method" not in columns),
        spans=False,
    )


def _about(groups: Sequence[Group], with_method: bool) -> str:
    """Return what all rows have in common."""
    apart = PLACE if with_method else (*PLACE, "method")
    words = shared_words([group.config for group in groups], apart)
    counts = {len(group.runs) for group in groups}
    return ", ".join(words + ([counted(counts.pop(), "seed")] if len(counts) == 1 else []))


def _heads(groups: Sequence[Group]) -> dict[str, Callable[[Group], str]]:
    """Return the columns that tell rows apart, with their texts."""
    differing = varying([group.config for group in groups], (*PLACE, "method", "seed"))
    heads: dict[str, Callable[[Group], str]] = {each.column: _texts(each) for each in differing}
    if not heads or len({group.config.method for group in groups}) > 1:
        heads = {"method": lambda group: group.config.method, **heads}
    rows = Counter(tuple(text(group) for text in heads.values()) for group in groups)
    if max(rows.values()) > 1:  # versions of a user's own code: `twofold runs show RUN` has more
        heads["run"] = lambda group: str(group.runs[0].summary["identity"])
    if len({len(group.runs) for group in groups}) > 1:
        heads[SEEDS] = lambda group: str(len(group.runs))
    return heads


def _texts(each: Option) -> Callable[[Group], str]:
    """Return a function from a group to an option's text; a dash if it says nothing of a run."""

    def text(group: Group) -> str:
        value = group.config.value(each.name)
        if each.name == "memory" and not stores_some(group.config):
            return EMPTY
        unstated = value in (None, "") or (value == 0 and each.name in TUNED)
        return EMPTY if unstated else plain(value)

    return text


def _number(place: Place, group: Group, metric: Metric) -> Number:
    mean, reductions = group.mean(metric.name), Reductions.of(group)
    measure = MEASURES[metric.name.rpartition(".")[2]]
    # Columns and titles state all other reductions.
    remarks = [*changed_plugins(group.runs[0]), *([] if measure.whole else [reductions.precision])]
    return Number(
        Section(place, Setting.of(group.config)),
        group.config.method,
        metric,
        None if mean is None else (mean, group.error(metric.name)),
        (group,),
        None,
        len(group.runs),
        bound=reductions.bound(metric.name),
        remarks=tuple(filter(None, remarks)),
    )


# The order of rows


def _sorted(groups: Sequence[Group], sort: Sequence[str]) -> list[Group]:
    configs = [group.config for group in groups]
    named = options(Config) | own_settings(configs)
    differing = varying(configs, ("method", "seed"))

    def usual(group: Group) -> Any:
        values = [natural(group.config.value(each.name)) for each in differing]
        plain_first = group.routines != "sgd", natural(group.routines)
        return natural(group.objective), *plain_first, values

    ordered = sorted(groups, key=usual)
    for name in reversed(sort):
        ordered = _sorted_by(ordered, name, named)
    return ordered


def _sorted_by(groups: Sequence[Group], name: str, named: dict[str, Option]) -> list[Group]:
    """Sort by a column; with a minus sign the other way round. Rows without a value come last."""
    reverse, name = name.startswith("-"), name.removeprefix("-")
    column = name.replace("-", "_")
    value: Key
    if column in all_metrics():
        metric = find_metric(column)
        better = MEASURES[metric.name.rpartition(".")[2]].better
        reverse ^= better == "higher"  # the best first

        def value(group: Group) -> Any:
            return group.mean(metric.name)
    elif name == SEEDS:

        def value(group: Group) -> Any:
            return len(group.runs)
    elif {name, column} & named.keys():
        option = name if name in named else column

        def value(group: Group) -> Any:
            return group.config.value(option)
    else:
        raise unknown("column", name, [*all_metrics(), *named, SEEDS])
    known = [group for group in groups if value(group) is not None]
    unknown_ones = [group for group in groups if value(group) is None]
    return sorted(known, key=lambda group: natural(value(group)), reverse=reverse) + unknown_ones


def natural(value: Any) -> tuple[Any, ...]:
    """Return a key that sorts numbers by size, also within texts: ring(200) before ring(1000)."""
    if isinstance(value, int | float):
        return 0, value, ()
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    return 1, 0, tuple((float(part), "") if k % 2 else (0.0, part) for k, part in enumerate(parts))
