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
from twofold.report.page.program import program


def build_page(source: Store | Sequence[Run], name: str | None = None) -> str:
    """Return the page of a store, or of a list of runs, as the text of an HTML file."""
    runs = source.runs(curves=True) if isinstance(source, Store) else source
    if name is None:
        name = str(source.folder) if isinstance(source, Store) else "runs"
    return document(as_json(page_contents(runs, name)))


def as_json(contents: Plain) -> str:
    return json.dumps(contents, allow_nan=False, separators=(",", ":"))


def document(contents: str, tag: str = "") -> str:
    """Return the page of contents, which are JSON.

    tag: identifies the contents for the page's server. A page with a tag asks for newer contents.
    """
    scripts = {"library": _library(), "program": program()}
    parts = scripts | {
        "policy": policy(scripts.values(), watching=bool(tag)),
        "style": _part("page.css"),
        # No name in the contents can end the element that they stand in.
        "contents": contents.replace("<", "\\u003c"),
        "tag": tag,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))


def policy(scripts: Iterable[str], watching: bool) -> str:
    """Return a policy under which the page runs these scripts only, and connects to nothing.

    watching: whether the page may connect to its own server.
    """
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
    """Return Plotly's script, which comes with its Python package."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    # The digest is of the text as a parser of HTML reads it.
    return text.replace("\r\n", "\n").replace("</script", "<\\/script")
