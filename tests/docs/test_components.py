"""Every component has a page of fixed shape, and what documents say is refused is refused."""

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
from twofold.routines import Routine
from twofold.terms import Addition

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = {Objective: "objectives", Addition: "terms", Memory: "memories", Routine: "routines"}
OVERVIEWS = {"terms": "objectives.md"}  # the others have one of their own
SHAPE = ["Idea", "Equation", "Options", "Cost", "Measured"]
FAMILIES = [(Routine, name) for name in Routine.families]  # routines of a different package
EVERY = [(kind, name) for kind in FOLDERS for name in sorted(kind.known)] + FAMILIES


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_component_has_a_page_of_fixed_shape(kind: type[Component], name: str):
    folder = FOLDERS[kind]
    text = (DOCS / folder / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^\*(\w+)\.\*(?: |$)", text, re.MULTILINE) == SHAPE
    assert re.search(r"^\*[A-Z].*\*$", text, re.MULTILINE), "a citation"
    overview = (DOCS / OVERVIEWS.get(folder, f"{folder}.md")).read_text()
    assert re.search(rf"^\| \[`{name}(?:\(\d+\)|:NAME)?`\]\({folder}/{name}\.md\)", overview, re.M)


@pytest.mark.parametrize(("kind", "name"), [each for each in EVERY if each not in FAMILIES])
def test_the_page_names_every_option_and_choice(kind: type[Component], name: str):
    text = (DOCS / FOLDERS[kind] / f"{name}.md").read_text()
    component = kind.find(name)
    for option, field in component.options().items():
        if not field.kw_only:
            assert f"`{option}`" in text, option
        hint = typing.get_type_hints(component)[option]
        if typing.get_origin(hint) is typing.Literal:
            assert all(f"`{word}`" in text for word in typing.get_args(hint))


@pytest.mark.parametrize(("kind", "folder"), FOLDERS.items())
def test_every_page_is_that_of_a_component(kind: type[Component], folder: str):
    pages = sorted(page.stem for page in (DOCS / folder).glob("*.md"))
    assert pages == sorted(name for each, name in EVERY if each is kind)


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
