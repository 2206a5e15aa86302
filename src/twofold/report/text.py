"""Numbers and names as text, the same in every table."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MINUS, EMPTY = "−", "–"

_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "γ": r"$\gamma$",
    MINUS: "$-$",
    EMPTY: "--",
}


def value_text(mean: float, error: float | None, decimals: int = 1) -> str:
    """`93.6 ± 0.1`; without an error for a single seed."""
    return f"{mean:.{decimals}f}" + (f" ± {error:.{decimals}f}" if error is not None else "")


def signed(number: float, decimals: int = 1) -> str:
    """`+0.3`, `−2.0`; what rounds to nothing has no sign."""
    text = f"{abs(number):.{decimals}f}"
    if not float(text):
        return text
    return ("+" if number > 0 else MINUS) + text


def latex_text(text: str) -> str:
    """Escaped; `code` is set as such."""
    parts = ["".join(_LATEX.get(letter, letter) for letter in part) for part in text.split("`")]
    return "".join(rf"\texttt{{{part}}}" if k % 2 else part for k, part in enumerate(parts))


def html_text(text: str) -> str:
    """Escaped; `code` is marked as such."""
    parts = [html.escape(part) for part in text.split("`")]
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))


def markdown_table(lines: list[list[str]], left: int) -> str:
    """The first line is the head; the first `left` columns are aligned to the left."""
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*escaped, strict=True)]
    widths[left:] = [max(width, 2) for width in widths[left:]]  # `-:`; a `:` alone is no rule
    padded = [
        [
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in escaped
    ]
    rule = ["-" * w if k < left else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [padded[0], rule, *padded[1:]])


def p_text(p: float | None) -> str:
    if p is None:
        return EMPTY
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def csv_text(kind: type[DataclassInstance], records: Sequence[DataclassInstance]) -> str:
    """A line a record. Where there are several values, spaces stand between, && for commands."""
    file = io.StringIO()
    names = [field.name for field in dataclasses.fields(kind)]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    for record in map(dataclasses.asdict, records):
        for name, value in record.items():
            between = " && " if name == "commands" else " "
            if isinstance(value, tuple):
                record[name] = between.join(str(part) for part in value if part is not None)
        writer.writerow(record)
    return file.getvalue()
