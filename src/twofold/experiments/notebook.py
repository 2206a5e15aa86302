"""Runs as notebooks show them: an HTML table of their numbers, and a small picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from twofold.errors import UserError
from twofold.text import EMPTY

DOTS = 80  # per inch


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], below: str = "", title: str = ""
) -> str:
    """Return a table; `below` is HTML, such as a picture."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<div><table>{caption}{''.join(lines)}</table>{below}</div>"


def html_list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _row(tag: str, values: Sequence[object]) -> str:
    texts = [EMPTY if value in (None, "") else str(value) for value in values]
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def inline_picture(shown: object) -> str:
    """Return an image of `shown.plot()`; nothing if it has no `plot` or no curves to draw."""
    plot: Any = getattr(shown, "plot", None)
    if plot is None:
        return ""
    file = io.BytesIO()
    try:
        plot().savefig(file, format="png", dpi=DOTS, bbox_inches="tight")
    except UserError:
        return ""
    content = base64.b64encode(file.getvalue()).decode()
    return f'<img src="data:image/png;base64,{content}" alt="accuracy curves">'
