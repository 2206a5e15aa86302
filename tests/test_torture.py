"""One attempt of each kind of torture; `make torture` makes many."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
torture = importlib.import_module("torture.__main__")


@pytest.mark.parametrize("kind", torture.KINDS)
def test_a_store_bears_it(kind):
    assert torture.attempt(kind, seed=7) == torture.Outcome()


def test_the_table_counts_what_went_wrong():
    result = {"kill": [torture.Outcome(), torture.Outcome(lost=True)]}
    assert "| kill |        2 |        1 |    1 |" in torture.table(result)
