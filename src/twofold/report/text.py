"""Text for Markdown, LaTeX, HTML and CSV, the same in every table."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twofold.text import EMPTY, MINUS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NUMBERS = re.compile(r"([-+]?[0-9.]+(e[-+]?[0-9]+)?|nan|inf)( [-+]?[0-9.]+(e[-+]?[0-9]+)?)*")
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


def latex_text(text: str) -> str:
    """Escape a text for LaTeX; `code` is set as such."""
    parts = ["".join(_LATEX.get(letter, letter) for letter in part) for part in text.split("`")]
    return "".join(rf"\texttt{{{part}}}" if k % 2 else part for k, part in enumerate(parts))


def html_text(text: str) -> str:
    """Escape a text for HTML; `code` is marked as such."""
    parts = [html.escape(part) for part in text.split("`")]
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))


def markdown_table(lines: list[list[str]], left: int) -> str:
    """Lay out lines of cells, the first of which is the head; the first `left` columns are aligned
    to the left.
    """
    escaped = [[cell.replace("\\", r"\\").replace("|", r"\|") for cell in line] for line in lines]
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


def inert_markdown(text: str) -> str:
    """Take the effect from links and HTML in Markdown, which names in runs may contain."""
    inert = text.replace("](", r"]\(").replace("]:", r"]\:")
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", inert)


def inert_cell(value: Any) -> Any:
    """Return a cell of a CSV file that no spreadsheet takes for a formula."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    return value if _NUMBERS.fullmatch(value) else f"'{value}"


def csv_text(kind: type[DataclassInstance], records: Sequence[DataclassInstance]) -> str:
    """Write a line per record. Several values are separated by spaces, commands by &&."""
    file = io.StringIO()
    names = [field.name for field in dataclasses.fields(kind)]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    for record in map(dataclasses.asdict, records):
        for name, value in record.items():
            between = " && " if name == "commands" else " "
            if isinstance(value, tuple):
                record[name] = between.join(str(part) for part in value if part is not None)
        writer.writerow({name: inert_cell(value) for name, value in record.items()})
    return file.getvalue()
