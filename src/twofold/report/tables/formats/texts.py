"""The texts of numbers and heads, before any markup."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from twofold.report.tables.model import Block, Number, Row, StudyTable
from twofold.text import EMPTY, signed, value_text

Marks = dict[tuple[str, ...], str]


def own_text(number: Number | None) -> str:
    """Return a number without its remarks."""
    if number is None or number.value is None:
        return EMPTY
    return number.sign + value_text(*number.value, number.metric.decimals)


def aside_text(number: Number | None, marks: Marks) -> str:
    """Return `(n=3, 1 diverged) [a]`."""
    if number is None or number.value is None:
        return ""
    words = [f"n={len(number.seeds)}"] if len(number.seeds) != number.wanted else []
    words += [f"{number.diverged} diverged"] if number.diverged else []
    parts = [f"({', '.join(words)})"] if words else []
    parts += [f"[{marks[number.remarks]}]"] if number.remarks else []
    return " ".join(parts)


def reference_text(number: Number | None) -> str:
    if number is None or number.printed is None:
        return ""
    return value_text(*number.printed, number.metric.decimals)


def difference_text(number: Number | None) -> str:
    """Return `−2.0 (2.3 se)`."""
    if number is None or number.difference is None:
        return ""
    text = number.sign + signed(number.difference, number.metric.decimals)
    errors = number.errors_apart
    return text + (f" ({errors:.1f} se)" if errors is not None else "")


def caption(table: StudyTable, block: Block) -> str:
    profile = f"Profile {table.profile}" if table.profile else ""
    parts = [table.title, block.title, block.about, profile]
    return ". ".join(filter(None, parts)) + "."


def lines_of(row: Row, marked: Callable[[Number | None], str]) -> list[tuple[str, list[str]]]:
    """Return a row as lines of texts: the runs', the reference and the difference, if any."""
    lines = [(row.heads[-1], [marked(number) for number in row.numbers])]
    for label, text in (("reference", reference_text), ("difference", difference_text)):
        texts = [text(number) for number in row.numbers]
        if any(texts):
            lines.append((label, texts))
    return lines


def shown_heads(block: Block) -> list[tuple[str, ...]]:
    """Return the heads of each row except for the last, blank where they repeat those above."""
    rows = block.rows
    if not block.spans:
        return [row.heads[:-1] for row in rows]
    shown: list[tuple[str, ...]] = []
    above: tuple[str, ...] = ()
    for row in rows:
        heads = row.heads[:-1]
        pairs = zip(heads, above, strict=False)
        repeated = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        shown.append(("",) * repeated + heads[repeated:])
        above = heads
    return shown
