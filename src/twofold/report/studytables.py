"""The paper's tables from any runs: mean and standard error over seeds, beside its own numbers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from twofold.benchmarks import Recipe
from twofold.errors import unknown
from twofold.experiments import studies
from twofold.experiments.config import Config
from twofold.report.cells import Cell
from twofold.report.layouts import TABLES, Column, Group, Layout, Metric, Part, label_of
from twofold.report.paper import printed
from twofold.report.selection import (
    Choice,
    Found,
    Reductions,
    Setting,
    Shelf,
    choose,
    remarks_on,
)

NEAR = 1e-9  # points: nothing but rounding

Value = tuple[float, float | None]  # mean and standard error
Used = set[tuple["Section", str]]  # with the method


class Place(NamedTuple):
    """Where in the study."""

    benchmark: str
    mode: str


class Section(NamedTuple):
    """A place and the setting that is shown."""

    place: Place
    setting: Setting

    def parts(self, names: Iterable[Part]) -> tuple[str, ...]:
        texts = {
            "benchmark": title_of(self.place.benchmark),
            "mode": self.place.mode,
            "LR": f"{self.setting.lr:g}",
            "BS": f"{self.setting.batch_size}",
        }
        return tuple(texts[name] for name in names)


@dataclass(frozen=True)
class Number:
    """One number of a table, and all that must be known of it. Accuracies are in percent."""

    section: Section
    method: str
    metric: Metric
    value: Value | None  # None where there are no runs
    cells: tuple[Cell, ...]  # that it comes from, its own first
    printed: Value | None  # the paper's
    wanted: int  # so many seeds
    bound: str = ""  # how it was judged, where it is a bound (or rough) for that
    remarks: tuple[str, ...] = ()  # how its runs are smaller than the paper's
    comparable: bool = False  # whether it means what the paper's means
    bold: bool = False
    used: bool = False  # in the appendix: whether a table with chosen settings shows it

    @property
    def sign(self) -> str:
        """`≤ ` before an upper bound, and so on; nothing where it is exact."""
        return f"{self.metric.thinned} " if self.bound else ""

    @property
    def difference(self) -> float | None:
        """From the paper's; an upper bound of it where the number is one."""
        if self.value is None or self.printed is None or not self.comparable:
            return None
        return self.value[0] - self.printed[0]

    @property
    def errors_apart(self) -> float | None:
        """The difference in units of both standard errors together.

        None for a bound, and where an error is rounded to nothing.
        """
        if self.difference is None or self.value is None or self.printed is None or self.bound:
            return None
        ours, theirs = self.value[1], self.printed[1]
        return abs(self.difference) / math.hypot(ours, theirs) if ours and theirs else None

    @property
    def seeds(self) -> list[int]:
        return self.cells[0].seeds if self.cells else []

    @property
    def diverged(self) -> int:
        return self.cells[0].diverged if self.cells else 0

    @property
    def command(self) -> str | None:
        """What makes it."""
        commands = dict.fromkeys(cell.command() for cell in self.cells)
        return " && ".join(filter(None, commands)) or None


@dataclass(frozen=True)
class Row:
    heads: tuple[str, ...]
    numbers: tuple[Number | None, ...]  # None for a method that the study does not have there


@dataclass(frozen=True)
class Block:
    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[int, ...]  # how many columns each has
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class StudyTable:
    """A table of the paper from runs. Rows without any run are left out."""

    name: str
    layout: Layout
    profile: str
    seeds: list[int]  # of the study
    blocks: tuple[Block, ...]
    choices: dict[Place, Choice]  # where there was one to make
    empty: list[Place]  # without any run

    @property
    def title(self) -> str:
        return self.layout.title

    def numbers(self) -> Iterator[Number]:
        """All places of the table, row by row, also those without runs."""
        for block in self.blocks:
            for row in block.rows:
                yield from filter(None, row.numbers)

    def marks(self) -> dict[tuple[str, ...], str]:
        """A letter for each way in which runs are smaller than the paper's."""
        ways = dict.fromkeys(number.remarks for number in self.numbers() if number.remarks)
        return {way: chr(ord("a") + k) for k, way in enumerate(ways)}

    def render(self, format: str = "md") -> str:
        """As text: md, latex, csv, json, or html (a fragment)."""
        from twofold.report.rendering import FORMATS

        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        return FORMATS[format](self)


def title_of(benchmark: str) -> str:
    """`Rotated MNIST`; the name as it is for a benchmark of a user's own."""
    return Recipe.known[benchmark].title if benchmark in Recipe.known else benchmark


def study_table(
    name: str, cells: Sequence[Cell], profile: str = "paper", metrics: Sequence[str] = ()
) -> StudyTable:
    """One of the paper's tables, a name in TABLES, from these cells; with these metrics, or all."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    layout = TABLES[name].only(metrics) if metrics else TABLES[name]
    return _table(name, _Source(layout, Shelf(cells), profile))


@cache
def _study(name: str, profile: str) -> studies.Study:
    return studies.load(name).replacing({"profile": profile})


class _Source:
    """The cells of a study's methods, at every place and setting."""

    def __init__(self, layout: Layout, shelf: Shelf, profile: str) -> None:
        self.layout, self.shelf, self.profile = layout, shelf, profile
        study = _study(layout.study, profile)
        self.seeds = study.seeds
        self.usual: dict[Place, Setting] = {}
        configs: dict[Place, dict[str, Config]] = {}
        for options, config in study.cells:
            place = Place(config.benchmark, config.mode)
            configs.setdefault(place, {})[options["method"]] = config
            self.usual.setdefault(place, Setting.of(config))
        benchmarks = list(dict.fromkeys(place.benchmark for place in configs))
        self.found: dict[Place, Found] = {  # benchmark by benchmark, as in the paper
            place: {method: shelf.find(config) for method, config in configs[place].items()}
            for place in sorted(configs, key=lambda place: benchmarks.index(place.benchmark))
        }

    def groups(self) -> Sequence[Group]:
        """The layout's, or else one for each objective with all that the study makes of it."""
        if self.layout.groups:
            return self.layout.groups
        objectives: dict[str, dict[str, Column]] = {}
        for method in (method for own in self.found.values() for method in own):
            own = objectives.setdefault(method.partition("+")[0], {})
            own[method] = Column(method, label_of(method))
        return [tuple(columns.values()) for columns in objectives.values()]

    def choice(self, place: Place) -> Choice | None:
        """The setting that is shown of a place, where it is one; None without runs."""
        found, usual = self.found[place], self.usual[place]
        if self.layout.setting == "study" and any(usual in own for own in found.values()):
            return Choice(usual, "as in the paper")
        return choose(found, self.layout.chosen_by, usual)

    def sections(self, place: Place) -> list[Section]:
        if self.layout.setting == "all":
            there = {setting for own in self.found[place].values() for setting in own}
            return [Section(place, setting) for setting in sorted(there, key=lambda s: s.order)]
        choice = self.choice(place)
        return [Section(place, choice.setting)] if choice else []

    def used(self) -> Used:
        """In the appendix: the sections and methods that tables with chosen settings show."""
        if self.layout.setting != "all":
            return set()
        chosen = [layout for layout in TABLES.values() if layout.setting == "chosen"]
        others = [_Source(layout, self.shelf, self.profile) for layout in chosen]
        return {
            (section, method)
            for other in others
            for place, found in other.found.items()
            for section in other.sections(place)
            for method in found
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
        tuple(_block(title, own, source, used) for title, own in blocks.items()),
        {place: choice for place, choice in choices.items() if choice},
        [place for place, own in sections.items() if not own],
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
    """A row a method, a column a metric."""
    metrics = tuple(row.heads[-1] for row in block.rows)
    numbers = zip(*(row.numbers for row in block.rows), strict=True)
    rows = [
        Row((label,), own)
        for label, own in zip(block.columns, numbers, strict=True)
        if any(number and (number.value or number.printed) for number in own)
    ]
    return Block(block.title, ("method",), metrics, (len(metrics),), tuple(rows))


def _number(
    section: Section, column: Column, metric: Metric, source: _Source, used: Used
) -> Number | None:
    found, setting = source.found[section.place], section.setting
    if column.method not in found:
        return None

    def ours(method: str) -> Value | None:
        cell = found.get(method, {}).get(setting)
        mean = cell.mean(metric.name) if cell else None
        return (mean, cell.error(metric.name)) if cell and mean is not None else None

    def theirs(method: str) -> Value | None:
        return printed(*section.place, method, metric.name, *setting)

    value, paper = (_related(whose, column.method, metric) for whose in (ours, theirs))
    methods = filter(None, (column.method, metric.relative_to)) if value else ()
    cells = tuple(found[method][setting] for method in methods)
    number = Number(section, column.method, metric, value, cells, paper, len(source.seeds))
    if not cells:
        return number
    less = [Reductions.of(cell) for cell in cells]
    return dataclasses.replace(
        number,
        bound=less[0].schedule if metric.thinned else "",
        remarks=remarks_on(cells, metric.name),
        comparable=metric.portable and all(each.comparable(metric.name) for each in less),
        used=(section, column.method) in used,
    )


def _related(whose: Callable[[str], Value | None], method: str, metric: Metric) -> Value | None:
    """A method's value; or how many times another's it is, with the error that follows."""
    value = whose(method)
    if not metric.relative_to or value is None:
        return value
    base = whose(metric.relative_to)
    if base is None:
        return None
    if method == metric.relative_to:
        return 1.0, None
    ratio = value[0] / base[0]
    if value[1] is None or base[1] is None:
        return ratio, None
    return ratio, ratio * math.hypot(value[1] / value[0], base[1] / base[0])


def _emboldened(numbers: Sequence[Number | None], groups: Sequence[int]) -> list[Number | None]:
    """In each group the highest, and those whose means lie within its standard error.

    Nothing in a group of which there is but one, whose runs were not made alike, or whose highest
    has no standard error.
    """
    made: list[Number | None] = []
    for size in groups:
        group = numbers[len(made) : len(made) + size]
        there = [number for number in group if number and number.value]
        bar = math.inf
        if len(there) > 1 and _alike(there):
            best, error = max((n.value for n in there if n.value), key=lambda value: value[0])
            bar = best - error - NEAR if error is not None else math.inf
        made += [
            n and dataclasses.replace(n, bold=n.value is not None and n.value[0] >= bar)
            for n in group
        ]
    return made


def _alike(numbers: Sequence[Number]) -> bool:
    return len({(number.remarks, number.bound) for number in numbers}) == 1
