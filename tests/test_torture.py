"""One attempt of each kind of torture that takes a moment; `make torture` makes many."""

from __future__ import annotations

import pytest

from torture import __main__ as torture


@pytest.mark.parametrize("kind", [kind for kind in torture.KINDS if kind not in torture.SELDOM])
def test_a_store_bears_it(kind):
    assert torture.attempt(kind, seed=7) == torture.Outcome()


def test_the_table_counts_what_went_wrong():
    result = {"kill": [torture.Outcome(), torture.Outcome(lost=True)]}
    assert "| kill |        2 |        1 |    1 |" in torture.table(result)
