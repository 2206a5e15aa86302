"""Runs as notebooks show them: an HTML table of their numbers, and a small picture."""

from __future__ import annotations

import base64
import io
import statistics
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from twofold.errors import UserError

EMPTY = "–"
DOTS = 80  # per inch


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], picture: str = "") -> str:
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<div><table>{''.join(lines)}</table>{picture}</div>"


def _row(tag: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(value))}</{tag}>' for value in values)}</tr>"


def percent(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.1f}"


def mean_and_error(values: Iterable[float | None]) -> str:
    """Return `83.1 ± 0.4`: the mean, and its standard error if there are several values."""
    known = [value for value in values if value is not None]
    if not known:
        return EMPTY
    if len(known) == 1:
        return percent(known[0])
    error = statistics.stdev(known) / len(known) ** 0.5
    return f"{statistics.fmean(known):.1f} ± {error:.1f}"


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
