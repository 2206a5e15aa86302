"""The table of all runs of a store, whatever trained them: a row per method and setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions, remarks_on
from twofold.compare.selection import Setting
from twofold.component import plain
from twofold.evaluation.measures import MEASURES
from twofold.experiments.config import varying
from twofold.options import Option
from twofold.report.tables.layouts import AVG, MIN, Layout, Metric, measured
from twofold.report.tables.model import Block, Number, Place, Row, Section, StudyTable, title_of
from twofold.text import EMPTY

NAME = "runs"
TITLE = "All methods of the store"
USUAL = ("min", "avg", "residual", "gap_depth", "recovery")  # unless metrics are named
NAMED = ("benchmark", "mode", "method", "profile", "seed")  # in titles and heads, or averaged


def runs_table(groups: Sequence[Group], profile: str, metrics: Sequence[str] = ()) -> StudyTable:
    """Return the table of these groups: a block per benchmark and mode, a row per group.

    metrics: keys of `MEASURES`, such as `min` and `gap_depth`.
    """
    measures = [measured(key) for key in MEASURES if key not in (MIN.name, AVG.name)]
    layout = Layout("", TITLE, metrics=(MIN, AVG, *measures), setting="all", transposed=True)
    layout = layout.only(metrics or USUAL)
    places: dict[Place, list[Group]] = {}
    for group in groups:
        if group.config.profile == profile:
            place = Place(group.config.benchmark, group.config.mode)
            places.setdefault(place, []).append(group)
    counts = Counter(
        len(group.runs) for groups_of_place in places.values() for group in groups_of_place
    )
    usual_count = max(counts, key=lambda count: (counts[count], count), default=0)
    blocks = tuple(
        _block(place, groups_of_place, layout, usual_count)
        for place, groups_of_place in places.items()
    )
    return StudyTable(NAME, layout, profile, list(range(usual_count)), blocks, {}, [])


def _block(place: Place, groups: Sequence[Group], layout: Layout, wanted: int) -> Block:
    differing = varying([group.config for group in groups], NAMED)
    rows = tuple(
        Row(
            (group.config.method, *(_text(group, each) for each in differing)),
            tuple(_number(place, group, metric, wanted) for metric in layout.metrics),
        )
        for group in sorted(groups, key=lambda group: (group.objective, group.routines != "sgd"))
    )
    heads = ("method", *(each.column for each in differing))
    columns = tuple(metric.label for metric in layout.metrics)
    title = f"{title_of(place.benchmark)}, {place.mode}"
    return Block(title, heads, columns, (len(columns),), rows)


def _text(group: Group, each: Option) -> str:
    """Return the value of an option; a dash where a loop did not state it."""
    value = group.config.value(each.name)
    unstated = value is None or (value == 0 and each.name in Setting._fields)
    return EMPTY if unstated else plain(value)


def _number(place: Place, group: Group, metric: Metric, wanted: int) -> Number:
    mean = group.mean(metric.name)
    return Number(
        Section(place, Setting.of(group.config)),
        group.config.method,
        metric,
        None if mean is None else (mean, group.error(metric.name)),
        (group,),
        None,
        wanted,
        bound=Reductions.of(group).bound(metric.name),
        remarks=remarks_on((group,), metric.name),
    )
