"""The HTML document: contents, style, program and charting library in one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.page.contents import Plain, page_contents


def build_page(source: Store | Sequence[Run], name: str | None = None) -> str:
    """The page of a store, or of runs at hand: the text of an HTML file."""
    runs = source.runs() if isinstance(source, Store) else source
    if name is None:
        name = str(source.folder) if isinstance(source, Store) else "runs"
    return document(as_json(page_contents(runs, name)))


def as_json(contents: Plain) -> str:
    return json.dumps(contents, allow_nan=False, separators=(",", ":"))


def document(contents: str, tag: str = "") -> str:
    """A page of contents, as JSON. With a tag of theirs it asks its server for newer ones."""
    scripts = {"library": _library(), "program": _part("page.js")}
    parts = scripts | {
        "policy": policy(scripts.values(), watching=bool(tag)),
        "style": _part("page.css"),
        # Whatever names it holds, it can't end the element that it stands in.
        "contents": contents.replace("<", "\\u003c"),
        "tag": tag,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))


def policy(scripts: Iterable[str], watching: bool) -> str:
    """What the browser may do for the page: run these two scripts, and connect to nothing."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    server = "'self'" if watching else "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        f"img-src data: blob:; connect-src {server}; "
        "base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


@cache
def _library() -> str:
    """Plotly's, which comes with its Python package."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    # As a parser of HTML is to read it: the digest is of that.
    return text.replace("\r\n", "\n").replace("</script", "<\\/script")
