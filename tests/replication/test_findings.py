"""replication/findings.py: the table from the stored runs."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

NEW_SEEDS = {  # sections of the appendix by their numbers of seeds
    "12": ("the-γ-study-again",),
    "16": ("new-seeds",),
    "24": ("new-seeds",),
    "50": ("a-second-round", "the-γ-study-again"),
}
FOLDER = Path(__file__).parents[2] / "replication"


@pytest.fixture(scope="module")
def table() -> list[Any]:
    with mock.patch.object(sys, "path", [str(FOLDER), *sys.path]):  # it imports its neighbours
        return importlib.import_module("findings").findings()


def test_rows_of_the_stored_runs(table):
    for finding in table:
        cells = f"{finding.shown}. {finding.numbers}"
        assert all(part.count(":") <= 1 for part in cells.split(". ")), cells
        assert not re.search(r"±[^(]*\([12] seed", finding.numbers)
        new = re.search(r"(12|16|24|50) seeds", finding.shown)
        if finding.section.startswith("appendix.md") and new:
            assert finding.section.partition("#")[2] in NEW_SEEDS[new[1]]
    assert sum(finding.short for finding in table) == 7
