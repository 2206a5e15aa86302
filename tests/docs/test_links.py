"""Links between documents lead to files and headings that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "docs", ROOT / "replication")
DOCUMENTS = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in folder.rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")


def prose(page: Path) -> str:
    """Return a document without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "code", text)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a document's headings, as Git hosts and the site form them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    kept = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.replace(" ", "-") for title in kept}


def found_from(page: Path, path: str) -> Path:
    """Return where a path leads; the pages of docs/site stand at the top of the site."""
    tops = (ROOT, page.parent) if page.parent == ROOT / "docs" / "site" else (page.parent,)
    targets = [(top / path).resolve() for top in tops]
    return next((target for target in targets if target.exists()), targets[0])


def wrong(page: Path) -> list[str]:
    """Return the links of a document that lead nowhere."""
    found = []
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = found_from(page, path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_all_links_lead_somewhere(page: Path) -> None:
    assert wrong(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `title`: here\n\n[a](#a-title-here) [b](b.md) [c](#c) `[d](d.md)`\n")
    assert wrong(page) == ["b.md", "#c"]
