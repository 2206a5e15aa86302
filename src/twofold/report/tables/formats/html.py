"""Tables as HTML: a fragment, with the command behind each number."""

from __future__ import annotations

import html
from itertools import accumulate

from twofold.report.tables.formats.texts import (
    Marks,
    aside_text,
    caption,
    difference_text,
    own_text,
    reference_text,
)
from twofold.report.tables.model import Block, Number, StudyTable
from twofold.report.tables.notes import notes
from twofold.report.text import html_text


def html_table(table: StudyTable) -> str:
    blocks = [_block(block, caption(table, block), table.marks()) for block in table.blocks]
    below = "\n".join(f"<li>{html_text(note)}</li>" for note in notes(table))
    text = "\n".join([*blocks, f'<ul class="notes">\n{below}\n</ul>']) + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode()  # right in a page of any encoding


def _block(block: Block, caption: str, marks: Marks) -> str:
    heads = "".join(f'<th scope="col">{html_text(head)}</th>' for head in block.heads)
    starts = set(accumulate(block.groups, initial=0))
    columns = "".join(
        f'<th scope="col"{_start(k in starts)}>{html_text(column)}</th>'
        for k, column in enumerate(block.columns)
    )
    body = [
        f"<tr>{_heads(block, k)}"
        + "".join(_number(n, j in starts, marks) for j, n in enumerate(row.numbers))
        + "</tr>"
        for k, row in enumerate(block.rows)
    ]
    return "\n".join(
        [
            '<table class="study-table">',
            f"<caption>{html_text(caption)}</caption>",
            f"<thead><tr>{heads}{columns}</tr></thead>",
            "<tbody>",
            *body,
            "</tbody>",
            "</table>",
        ]
    )


def _start(first: bool) -> str:
    """Mark the first column of a group."""
    return ' class="group"' if first else ""


def _heads(block: Block, k: int) -> str:
    """Return the heads that begin in a row; a head that rows below share spans them."""
    rows = block.rows
    if not block.spans:
        return "".join(f'<th scope="row">{html_text(head)}</th>' for head in rows[k].heads)
    heads = []
    for depth, head in enumerate(rows[k].heads, 1):
        row_heads = rows[k].heads[:depth]
        if k and rows[k - 1].heads[:depth] == row_heads:
            continue
        span = sum(row.heads[:depth] == row_heads for row in rows)
        scope = f'scope="rowgroup" rowspan="{span}"' if span > 1 else 'scope="row"'
        heads.append(f"<th {scope}>{html_text(head)}</th>")
    return "".join(heads)


def _number(number: Number | None, first: bool, marks: Marks) -> str:
    classes = ["group"] if first else []
    classes += [name for name in ("bold", "used") if number and getattr(number, name)]
    attributes = f' class="{" ".join(classes)}"' if classes else ""
    command = number.command if number else None
    if command:
        quoted = html.escape(command, quote=True)
        attributes += f' data-command="{quoted}" title="{quoted}"'
    tag = "strong" if number and number.bold else "em" if number and number.used else "span"
    parts = [f"<{tag}>{html_text(own_text(number))}</{tag}>"]
    for name, text in (
        ("aside", aside_text(number, marks)),
        ("reference", reference_text(number)),
        ("difference", difference_text(number)),
    ):
        prefix = "reference " if name == "reference" else ""
        parts += [f'<small class="{name}">{prefix}{html_text(text)}</small>'] if text else []
    return f"<td{attributes}>{' '.join(parts)}</td>"
