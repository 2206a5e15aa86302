"""The pages of the reference: one per public name, described, with an example that runs."""

from __future__ import annotations

import doctest
import inspect
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import twofold
from twofold import Memory, Objective, Routine

PAGES = Path(__file__).resolve().parents[1] / "reference"
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def run_examples(page: Path, names: dict[str, Any]) -> tuple[int, str]:
    """Run the examples of a page, which may change the names; return their number, and failures."""
    text = page.read_text("utf-8").replace("```", "")  # a fence would count as output
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    return len(test.examples), "".join(report)


def without_page(pages: Path = PAGES) -> list[str]:
    """Return the public names that have no page."""
    return [name for name in twofold.__all__ if not (pages / f"{name}.md").exists()]


def public_names(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield values by their names, each followed by the public methods and properties of a class.

    Members that a class inherits count where they are defined.
    """
    for name, value in values:
        yield name, value
        if inspect.isclass(value):
            members = {key: each for key, each in vars(value).items() if not key.startswith("_")}
            for key, member in members.items():
                if inspect.isroutine(member) or isinstance(member, property):
                    yield f"{name}.{key}", member


def undocumented(values: Iterable[tuple[str, Any]] | None = None) -> list[str]:
    """Return the public names without a docstring, which their pages would leave out."""
    if values is None:
        values = ((name, getattr(twofold, name)) for name in twofold.__all__)
    return [name for name, value in public_names(values) if not inspect.getdoc(value)]


def failures(pages: Path = PAGES) -> list[str]:
    """Run the examples of all pages, and return what is wrong."""
    shared: dict[str, Any] = {}
    wrong = [run_examples(pages / "README.md", shared)[1]]
    for page in sorted(pages.glob("[A-Za-z]*.md")):
        if page.stem == "README":
            continue
        known = [(kind, dict(kind.known)) for kind in (Memory, Objective, Routine)]
        with tempfile.TemporaryDirectory() as folder:
            count, report = run_examples(page, {**shared, "folder": Path(folder)})
        for kind, before in known:  # examples define components of their own
            kind.known.clear()
            kind.known.update(before)
        wrong.append(report if count else f"{page} has no example\n")
    return [report for report in wrong if report]
