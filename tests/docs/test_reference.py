"""docs/reference: every public name has a page, with an example that runs."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import twofold
from twofold import Memory, Objective, Routine

PAGES = Path(__file__).parents[2] / "docs" / "reference"
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def run_examples(page: Path, names: dict[str, Any]) -> int:
    """Run the examples of a page, which may change the names, and return their number."""
    text = page.read_text("utf-8").replace("```", "")  # a fence would count as output
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)
    return len(test.examples)


@pytest.fixture(scope="module")
def shared() -> dict[str, Any]:
    """The names that all examples share."""
    names: dict[str, Any] = {}
    run_examples(PAGES / "README.md", names)
    return names


def test_every_public_name_has_a_page() -> None:
    assert sorted(page.stem for page in PAGES.glob("*.md")) == sorted([*twofold.__all__, "README"])


@pytest.mark.parametrize("name", twofold.__all__)
def test_the_example_runs(
    name: str, shared: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (Memory, Objective, Routine):  # examples define components of their own
        monkeypatch.setattr(kind, "known", dict(kind.known))
    assert run_examples(PAGES / f"{name}.md", {**shared, "folder": tmp_path}) > 0
