"""docs/reference: every public name has a page, with an example that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import twofold
from docs.site.examples import (
    PAGES,
    failures,
    public_names,
    run_examples,
    undocumented,
    without_page,
)
from twofold import Memory, Objective, Routine


@pytest.fixture(scope="module")
def shared() -> dict[str, Any]:
    """The names that all examples share."""
    names: dict[str, Any] = {}
    _, report = run_examples(PAGES / "README.md", names)
    assert not report, report
    return names


def test_every_public_name_has_a_page() -> None:
    assert sorted(page.stem for page in PAGES.glob("*.md")) == sorted([*twofold.__all__, "README"])


def test_every_public_name_and_its_members_are_documented() -> None:
    assert undocumented() == []


def test_no_property_is_described_with_a_colon_in_its_first_line() -> None:
    """Sphinx would take what stands before it for the type of the property."""
    values = public_names((name, getattr(twofold, name)) for name in twofold.__all__)
    lines = {name: value.__doc__ for name, value in values if isinstance(value, property)}
    assert "Run.curves" in lines
    assert [name for name, text in lines.items() if ": " in (text or "").partition("\n")[0]] == []


def test_members_without_a_docstring_are_named() -> None:
    class Half:
        """A class that is documented in part."""

        def said(self) -> None:
            """Return nothing."""

        def unsaid(self) -> None: ...

        @classmethod
        def made(cls) -> None: ...

        @property
        def held(self) -> None: ...

        def _private(self) -> None: ...

    assert undocumented([("Half", Half)]) == ["Half.unsaid", "Half.made", "Half.held"]


@pytest.mark.parametrize("name", twofold.__all__)
def test_the_example_runs(
    name: str, shared: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (Memory, Objective, Routine):  # examples define components of their own
        monkeypatch.setattr(kind, "known", dict(kind.known))
    count, report = run_examples(PAGES / f"{name}.md", {**shared, "folder": tmp_path})
    assert not report, report
    assert count > 0


def test_the_site_is_not_built_with_a_failing_example_or_without_a_page(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("```pycon\n>>> one = 1\n```\n")
    (tmp_path / "run.md").write_text("```pycon\n>>> one + 1\n3\n```\n")
    (tmp_path / "gaps.md").write_text("Nothing to run.\n")
    none, wrong = failures(tmp_path)
    assert none == f"{tmp_path / 'gaps.md'} has no example\n"
    assert "Expected:\n    3\nGot:\n    2" in wrong
    assert {"run", "gaps"}.isdisjoint(without_page(tmp_path))
    assert without_page(tmp_path) == [n for n in twofold.__all__ if n not in ("run", "gaps")]
