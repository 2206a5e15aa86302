"""Study tables: numbers in their rows and columns, with all that is known about each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from twofold.benchmarks import Recipe
from twofold.compare.choice import Choice
from twofold.compare.groups import Group
from twofold.compare.shelf import Setting
from twofold.report.tables.layouts import Layout, Metric, Part
from twofold.text import stated

Value = tuple[float, float | None]  # mean and standard error


class Place(NamedTuple):
    """A benchmark and mode of the study."""

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
            "LR": stated(self.setting.lr),
            "BS": stated(self.setting.batch_size),
        }
        return tuple(texts[name] for name in names)


@dataclass(frozen=True)
class Number:
    """One number of a table. Accuracies are in percent."""

    section: Section
    method: str
    metric: Metric
    value: Value | None  # None if there are no runs
    groups: tuple[Group, ...]  # that it comes from, its own first
    printed: Value | None  # the reference
    wanted: int  # the number of seeds in the study
    bound: str = ""  # how it was evaluated, if that makes it a bound or approximate
    remarks: tuple[str, ...] = ()  # how its runs are smaller than full ones
    comparable: bool = False  # whether it means the same as the reference
    bold: bool = False
    used: bool = False  # with all settings: whether a table with chosen settings shows it

    @property
    def sign(self) -> str:
        """`≤ ` before an upper bound, and so on; nothing if it is exact."""
        return f"{self.metric.thinned} " if self.bound else ""

    @property
    def difference(self) -> float | None:
        """The difference from the reference; an upper bound of it if the number is one."""
        if self.value is None or self.printed is None or not self.comparable:
            return None
        return self.value[0] - self.printed[0]

    @property
    def errors_apart(self) -> float | None:
        """The difference in units of both standard errors together.

        It is None for a bound, with fewer than three seeds, and if an error is rounded to nothing.
        """
        if self.difference is None or self.value is None or self.printed is None or self.bound:
            return None
        error, printed = self.value[1], self.printed[1]
        return abs(self.difference) / math.hypot(error, printed) if error and printed else None

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs that have it; a measure may be undefined for some."""
        return list(self.groups[0].by_seed(self.metric.name)) if self.groups else []

    @property
    def diverged(self) -> int:
        return self.groups[0].diverged if self.groups else 0

    @property
    def command(self) -> str | None:
        """The command that trains its runs."""
        commands = dict.fromkeys(group.command() for group in self.groups)
        return " && ".join(filter(None, commands)) or None


@dataclass(frozen=True)
class Row:
    """A row: its heads and its numbers."""

    heads: tuple[str, ...]
    numbers: tuple[Number | None, ...]  # None for a method that the study does not have there


@dataclass(frozen=True)
class Block:
    """Rows under one title, with the same columns."""

    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[int, ...]  # the number of columns in each group
    rows: tuple[Row, ...]
    about: str = ""  # what all its rows have in common
    spans: bool = True  # whether heads that repeat those above are left blank


@dataclass(frozen=True)
class StudyTable:
    """A table of a study, filled from runs. Rows without any run are left out.

    The table of a store has neither a study nor a profile.
    """

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
        """Yield all numbers of the table, row by row, also those without runs."""
        for block in self.blocks:
            for row in block.rows:
                yield from filter(None, row.numbers)

    def marks(self) -> dict[tuple[str, ...], str]:
        """Return a letter for each way in which runs are smaller than full ones."""
        ways = dict.fromkeys(number.remarks for number in self.numbers() if number.remarks)
        return {way: chr(ord("a") + k) for k, way in enumerate(ways)}


def title_of(benchmark: str) -> str:
    """Return `Rotated MNIST`, or the name of an unknown benchmark as it is."""
    return Recipe.known[benchmark].title if benchmark in Recipe.known else benchmark
