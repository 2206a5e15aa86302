"""docs/routines.md: every routine, every choice of an option, and refused chains as they are."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest

import twofold
from twofold.errors import UserError
from twofold.routines import Routine


def test_the_document_tells_the_truth():
    """docs/routines.md: every routine has its row, and what is said to be refused is, so."""
    text = (Path(__file__).parents[2] / "docs" / "routines.md").read_text()
    rows = re.findall(
        r"^\| `(\w+\+\S+)`(?: with `--momentum (\d)`)? \| (.+) \|$", text, re.MULTILINE
    )
    assert len(rows) == 10
    for method, momentum, why in rows:
        with pytest.raises(UserError) as caught:
            twofold.configure("rotated-mnist", method, momentum=float(momentum or 0.9))
        assert str(caught.value) == why
    listed = re.findall(r"^\| \[?`([\w-]+)(?::NAME)?`", text, re.MULTILINE)
    assert sorted(listed) == sorted([*Routine.known, *Routine.families])
    titles = re.findall(r"^### ([\w-]+)$", text, re.MULTILINE)
    assert sorted([*titles, "sgd"]) == sorted(listed)


@pytest.mark.parametrize("name", sorted(Routine.known))
def test_the_document_names_every_choice_of_an_option(name):
    text = (Path(__file__).parents[2] / "docs" / "routines.md").read_text()
    section = text.partition(f"\n### {name}\n")[2].partition("\n#")[0]
    for option, hint in typing.get_type_hints(Routine.find(name)).items():
        if typing.get_origin(hint) is typing.Literal:
            missing = [word for word in typing.get_args(hint) if f"`{word}`" not in section]
            assert not missing, option
