"""The numbers that the paper prints, from the files in reference/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twofold.compare.reference import Address, Block, Printed, address, read_rows

FILES = Path(__file__).parent / "reference"


def numbers() -> dict[Address, Printed]:
    """Return all usable numbers: the appendix tables, the gamma study and the timing table."""
    values = {}
    for row in _rows("appendix_tables"):
        if row["usable"] == "yes":
            place = _address(row, row["method"], row["metric"].lower())
            values[place] = Printed(float(row["mean"]), float(row["sem"]))
    for row in _rows("gamma_study"):
        gamma = row["gamma"]  # none for plain ER
        method = f"er+gem(gamma={gamma},when=always)" if gamma else row["method"]
        place = _address(row, method, row["metric"].lower())
        values[place] = Printed(float(row["mean"]), float(row["sem"]))
    for row in _rows("timing"):
        place = _address(row, row["method"], "seconds.training")
        values[place] = Printed(float(row["seconds_mean"]), float(row["seconds_sem"]))
    return values


def slips() -> dict[Block, str]:
    """Return the one block that repeats the numbers of a different batch size."""
    return {
        Block(row["benchmark"], row["mode"], int(row["batch_size"])): (
            "they repeat those of a different batch size, a slip"
        )
        for row in _rows("appendix_tables")
        if row["usable"] == "no"
    }


def _rows(name: str) -> Iterator[dict[str, str]]:
    return read_rows(FILES / f"{name}.csv")


def _address(row: dict[str, str], method: str, metric: str) -> Address:
    place = row["benchmark"], row["mode"], method, metric
    return address(*place, float(row["lr"]), int(row["batch_size"]))
