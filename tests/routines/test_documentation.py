"""docs/routines.md: what is said to be refused is refused with these words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import twofold
from twofold.errors import UserError


def test_refused_chains_are_refused_with_these_words():
    text = (Path(__file__).parents[2] / "docs" / "routines.md").read_text()
    rows = re.findall(
        r"^\| `(\w+\+\S+)`(?: with `--momentum (\d)`)? \| (.+) \|$", text, re.MULTILINE
    )
    assert len(rows) == 11
    for method, momentum, why in rows:
        with pytest.raises(UserError) as caught:
            twofold.configure("rotated-mnist", method, momentum=float(momentum or 0.9))
        assert str(caught.value) == why
