"""Fill a layout from runs: mean and standard error over seeds, beside the reference."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache

from twofold.compare.choice import Choice, Found, choose
from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions, remarks_on
from twofold.compare.reference import printed
from twofold.compare.shelf import Setting, Shelf
from twofold.experiments import profiles, studies
from twofold.experiments.config import Config
from twofold.report.tables.layouts import Column, Columns, Layout, Metric, Part, label_of, tables
from twofold.report.tables.model import Block, Number, Place, Row, Section, StudyTable, Value
from twofold.statistics import FEWEST

NEAR = 1e-9  # points: nothing but rounding

Used = set[tuple[Section, str]]  # with the method


def study_table(
    name: str,
    groups: Sequence[Group],
    profile: str = profiles.DEFAULT,
    metrics: Sequence[str] = (),
) -> StudyTable:
    """Return a paper's table, filled from these groups, with these metrics or all."""
    layout = tables().find(name)
    layout = layout.only(metrics) if metrics else layout
    return _table(name, _Source(layout, Shelf(groups), profile))


@cache
def _study(name: str, profile: str) -> studies.Study:
    study = studies.load(name)
    if all(point.config.profile == profile for point in study.points):
        return study
    return study.replacing({"profile": profile})


class _Source:
    """The groups of a study's methods, at every place and setting."""

    def __init__(self, layout: Layout, shelf: Shelf, profile: str) -> None:
        self.layout, self.shelf, self.profile = layout, shelf, profile
        study = _study(layout.study, profile)
        self.seeds = study.seeds
        self.usual: dict[Place, Setting] = {}
        configs: dict[Place, dict[str, Config]] = {}
        for options, config, _ in study.points:
            place = Place(config.benchmark, config.mode)
            configs.setdefault(place, {})[options["method"]] = config
            self.usual.setdefault(place, Setting.of(config))
        benchmarks = list(dict.fromkeys(place.benchmark for place in configs))
        self.found: dict[Place, Found] = {  # benchmark by benchmark, in the study's order
            place: {method: shelf.find(config) for method, config in configs[place].items()}
            for place in sorted(configs, key=lambda place: benchmarks.index(place.benchmark))
        }

    def groups(self) -> Sequence[Columns]:
        """Return the layout's groups of columns, or one per objective with all its methods."""
        if self.layout.groups:
            return self.layout.groups
        objectives: dict[str, dict[str, Column]] = {}
        for method in (method for methods in self.found.values() for method in methods):
            methods = objectives.setdefault(method.partition("+")[0], {})
            methods[method] = Column(method, label_of(method, self.layout.labels))
        return [tuple(columns.values()) for columns in objectives.values()]

    def choice(self, place: Place) -> Choice | None:
        """Return the one setting that is shown of a place; None without runs."""
        by_method, default = self.found[place], self.usual[place]
        if self.layout.setting == "study" and any(
            default in settings for settings in by_method.values()
        ):
            return Choice(default, "as in the study")
        return choose(by_method, self.layout.chosen_by, default)

    def sections(self, place: Place) -> list[Section]:
        if self.layout.setting == "all":
            settings = {
                setting for by_setting in self.found[place].values() for setting in by_setting
            }
            return [Section(place, setting) for setting in sorted(settings, key=lambda s: s.order)]
        choice = self.choice(place)
        return [Section(place, choice.setting)] if choice else []

    def used(self) -> Used:
        """Return what the paper's tables with chosen settings show, for a table of all settings."""
        if self.layout.setting != "all":
            return set()
        layouts = [layout for layout in tables().values() if layout.paper == self.layout.paper]
        chosen = [layout for layout in layouts if layout.setting == "chosen"]
        others = [_Source(layout, self.shelf, self.profile) for layout in chosen]
        return {
            (section, method)
            for other in others
            for place, by_method in other.found.items()
            for section in other.sections(place)
            for method in by_method
        }


def _table(name: str, source: _Source) -> StudyTable:
    sections = {place: source.sections(place) for place in source.found}
    blocks: dict[tuple[str, ...], list[Section]] = {}
    for section in itertools.chain(*sections.values()):
        blocks.setdefault(section.parts(source.layout.blocks), []).append(section)
    used = source.used()
    choices = {place: source.choice(place) for place in sections}
    return StudyTable(
        name,
        source.layout,
        source.profile,
        source.seeds,
        tuple(
            _block(title, rows_of_place, source, used) for title, rows_of_place in blocks.items()
        ),
        {place: choice for place, choice in choices.items() if choice},
        [place for place, rows_of_place in sections.items() if not rows_of_place],
    )


def _block(title: Sequence[str], sections: Sequence[Section], source: _Source, used: Used) -> Block:
    layout = source.layout
    known = {method for section in sections for method in source.found[section.place]}
    groups = [kept for g in source.groups() if (kept := [c for c in g if c.method in known])]
    rows = []
    for section in sections:
        for metric in layout.metrics:
            numbers = [
                _number(section, column, metric, source, used)
                for group in groups
                for column in group
            ]
            if layout.bold:
                numbers = _emboldened(numbers, [len(group) for group in groups])
            rows.append(Row((*section.parts(layout.heads), metric.label), tuple(numbers)))
    words = [_named(part, text) for part, text in zip(layout.blocks, title, strict=True)]
    columns = tuple(column.label for group in groups for column in group)
    sizes = tuple(len(group) for group in groups)
    block = Block(", ".join(words), (*layout.heads, "metric"), columns, sizes, tuple(rows))
    return _transposed(block) if layout.transposed else block


def _named(part: Part, text: str) -> str:
    return f"{part} {text}" if part in ("LR", "BS") else text


def _transposed(block: Block) -> Block:
    """Return a row per method and a column per metric."""
    metrics = tuple(row.heads[-1] for row in block.rows)
    numbers = zip(*(row.numbers for row in block.rows), strict=True)
    rows = [
        Row((label,), values)
        for label, values in zip(block.columns, numbers, strict=True)
        if any(number and (number.value or number.printed) for number in values)
    ]
    return Block(block.title, ("method",), metrics, (len(metrics),), tuple(rows))


def _number(
    section: Section, column: Column, metric: Metric, source: _Source, used: Used
) -> Number | None:
    by_method, setting = source.found[section.place], section.setting
    if column.method not in by_method:
        return None

    def measured(method: str) -> Value | None:
        group = by_method.get(method, {}).get(setting)
        mean = group.mean(metric.name) if group else None
        return (mean, group.error(metric.name)) if group and mean is not None else None

    def reference(method: str) -> Value | None:
        return printed(*section.place, method, metric.name, *setting, paper=source.layout.paper)

    value = _related(measured, column.method, metric)
    reference_value = _related(reference, column.method, metric)
    methods = filter(None, (column.method, metric.relative_to)) if value else ()
    groups = tuple(by_method[method][setting] for method in methods)
    number = Number(
        section, column.method, metric, value, groups, reference_value, len(source.seeds)
    )
    if not groups:
        return number
    reductions = [Reductions.of(group) for group in groups]
    return dataclasses.replace(
        number,
        bound=reductions[0].bound(metric.name),
        remarks=remarks_on(groups, metric.name),
        comparable=metric.portable and all(each.comparable(metric.name) for each in reductions),
        used=(section, column.method) in used,
    )


def _related(value_of: Callable[[str], Value | None], method: str, metric: Metric) -> Value | None:
    """Return a method's value, or its ratio to a different method's with the error that follows."""
    value = value_of(method)
    if not metric.relative_to or value is None:
        return value
    base = value_of(metric.relative_to)
    if base is None:
        return None
    if method == metric.relative_to:
        return 1.0, None
    ratio = value[0] / base[0]
    if value[1] is None or base[1] is None:
        return ratio, None
    return ratio, ratio * math.hypot(value[1] / value[0], base[1] / base[0])


def _emboldened(numbers: Sequence[Number | None], sizes: Sequence[int]) -> list[Number | None]:
    """Mark the highest of each group, and those whose means lie within its standard error.

    Mark nothing in a group with a single number, with runs that were not trained and evaluated
    alike, with bounds (the highest bound need not be the highest number), or with a number from
    fewer than three seeds.
    """
    marked: list[Number | None] = []
    for size in sizes:
        group = numbers[len(marked) : len(marked) + size]
        present = [number for number in group if number and number.value]
        bar = math.inf
        if len(present) > 1 and _comparable(present):
            best, error = max((n.value for n in present if n.value), key=lambda value: value[0])
            bar = best - (error or 0.0) - NEAR
        marked += [
            n and dataclasses.replace(n, bold=n.value is not None and n.value[0] >= bar)
            for n in group
        ]
    return marked


def _comparable(numbers: Sequence[Number]) -> bool:
    exact = not any(number.bound for number in numbers)
    alike = len({number.remarks for number in numbers}) == 1
    return exact and alike and all(len(number.seeds) >= FEWEST for number in numbers)
