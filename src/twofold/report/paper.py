"""The paper's own numbers, from the files in twofold/paper, to be put beside those of runs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from twofold.method import Method

FILES = Path(__file__).parents[1] / "paper"

Address = tuple[str, str, str, str, float, int]  # as the arguments of `printed`


class Printed(NamedTuple):
    """A number as the paper prints it: the mean over five seeds, and its standard error."""

    mean: float
    error: float


def printed(
    benchmark: str, mode: str, method: str, metric: str, lr: float, batch_size: int
) -> Printed | None:
    """`metric` is min, avg or seconds.training. None where the paper has no number to rely on."""
    text = Method.parse(method).text()
    return _numbers().get((benchmark, mode, text, metric, lr, batch_size))


@cache
def slips() -> set[tuple[str, str, int]]:
    """The blocks (benchmark, mode, batch size) whose numbers belong somewhere else."""
    return {
        (row["benchmark"], row["mode"], int(row["batch_size"]))
        for row in _rows("appendix_tables")
        if row["usable"] == "no"
    }


@cache
def _numbers() -> dict[Address, Printed]:
    numbers = {}
    for row in _rows("appendix_tables"):
        if row["usable"] == "yes":
            mean, error = row["mean"], row["sem"]
            address = _address(row, row["method"], row["metric"].lower())
            numbers[address] = Printed(float(mean), float(error))
    for row in _rows("gamma_study"):
        gamma = row["gamma"]  # none for plain ER
        method = f"er+gem(gamma={gamma},when=always)" if gamma else row["method"]
        address = _address(row, method, row["metric"].lower())
        numbers[address] = Printed(float(row["mean"]), float(row["sem"]))
    for row in _rows("timing"):
        address = _address(row, row["method"], "seconds.training")
        numbers[address] = Printed(float(row["seconds_mean"]), float(row["seconds_sem"]))
    return numbers


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (FILES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _address(row: dict[str, str], method: str, metric: str) -> Address:
    text = Method.parse(method).text()
    lr, batch_size = float(row["lr"]), int(row["batch_size"])
    return row["benchmark"], row["mode"], text, metric, lr, batch_size
