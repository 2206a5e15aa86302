"""docs/objectives.md and docs/memories.md: a section of fixed shape for each, and true refusals."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest
from helpers.benchmarks import class_benchmark

import twofold
from twofold.component import Component
from twofold.errors import UserError
from twofold.memories import Memory
from twofold.objectives import Objective
from twofold.terms import Addition

DOCS = Path(__file__).parents[2] / "docs"
PAGES = dict.fromkeys((Objective, Addition), DOCS / "objectives.md")
PAGES |= {Memory: DOCS / "memories.md"}
SHAPE = ["Idea", "Equation", "Options", "Cost", "Measured"]
EVERY = [(kind, name) for kind in PAGES for name in sorted(kind.known)]


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_component_has_a_section_of_fixed_shape(kind: type[Component], name: str):
    text = PAGES[kind].read_text()
    assert re.search(rf"^\| \[`{name}(?:\(\d+\))?`\]\(#{name}\)", text, re.MULTILINE)
    section = text.partition(f"\n### {name}\n")[2].partition("\n#")[0]
    assert re.findall(r"^\*(\w+)\.\* ", section, re.MULTILINE) == SHAPE
    assert re.search(r"^\*[A-Z].*\*$", section, re.MULTILINE), "a citation"
    component = kind.find(name)
    for option, field in component.options().items():
        if not field.kw_only:
            assert f"`{option}`" in section, option
        hint = typing.get_type_hints(component)[option]
        if typing.get_origin(hint) is typing.Literal:
            assert all(f"`{word}`" in section for word in typing.get_args(hint))


def test_the_titles_are_those_of_components():
    for page in set(PAGES.values()):
        titles = re.findall(r"^### (\S+)$", page.read_text(), re.MULTILINE)
        known = [name for kind, name in EVERY if PAGES[kind] == page]
        assert sorted(titles) == sorted(known)


def refusals(page: str) -> list[tuple[str, str, str]]:
    text = (DOCS / page).read_text().partition("| why not |")[2].partition("\n\n")[0]
    row = r"^\| `(.+?)`(?: with `--memory-per-class (\d+)`)? \| (.+) \|$"
    return re.findall(row, text, re.MULTILINE)


def test_what_is_said_to_be_refused_is_with_these_words():
    rows = refusals("objectives.md")
    assert len(rows) == 3
    for method, _, why in rows:
        with pytest.raises(UserError) as caught:
            twofold.configure("rotated-mnist", method)
        assert str(caught.value) == why
    rows = refusals("memories.md")
    assert len(rows) == 4
    for memory, quota, why in rows:
        with pytest.raises(UserError) as caught:
            twofold.configure(
                class_benchmark(), "er", memory=memory, memory_per_class=int(quota or 100)
            )
        assert str(caught.value) == why
