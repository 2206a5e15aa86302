"""References: the numbers that papers print, to compare runs with.

A paper's reference.py has

    numbers()   a mapping from addresses to Printed; `address` makes one
    slips()     a mapping from blocks (benchmark, mode, batch size) whose printed numbers are not
                used to the reason in words; may be missing
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from twofold import papers
from twofold.method import Method


class Printed(NamedTuple):
    """A number as a paper prints it: a mean over seeds and its standard error."""

    mean: float
    error: float


class Address(NamedTuple):
    """The method, setting and metric of a printed number."""

    benchmark: str
    mode: str
    method: str  # the shortest text that means the same
    metric: str  # min, avg or seconds.training
    lr: float
    batch_size: int


class Block(NamedTuple):
    """A block of printed numbers."""

    benchmark: str
    mode: str
    batch_size: int


def address(
    benchmark: str, mode: str, method: str, metric: str, lr: float, batch_size: int
) -> Address:
    """Return the address of a number; the method may be written in any way."""
    return Address(benchmark, mode, Method.parse(method).text(), metric, lr, batch_size)


def printed(
    benchmark: str,
    mode: str,
    method: str,
    metric: str,
    lr: float,
    batch_size: int,
    paper: str | None = None,
) -> Printed | None:
    """Return the number that a paper prints, or the first of all papers that has one."""
    if Address(benchmark, mode, "", metric, lr, batch_size) not in _settings():
        return None  # as for most numbers of a table; it takes long to read a method
    place = address(benchmark, mode, method, metric, lr, batch_size)
    references = _numbers() if paper is None else {paper: _numbers().get(paper, {})}
    values = (numbers[place] for numbers in references.values() if place in numbers)
    return next(values, None)


@cache
def slips(paper: str) -> Mapping[Block, str]:
    """Return the blocks whose printed numbers are not used, each with the reason."""
    module = papers.modules("reference").get(paper)
    corrections: Mapping[Block, str] = getattr(module, "slips", dict)()
    return corrections


def read_rows(file: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file by column."""
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


@cache
def _numbers() -> dict[str, Mapping[Address, Printed]]:
    return {paper: module.numbers() for paper, module in papers.modules("reference").items()}


@cache
def _settings() -> set[Address]:
    """Return the addresses of all printed numbers without their methods."""
    return {place._replace(method="") for numbers in _numbers().values() for place in numbers}
