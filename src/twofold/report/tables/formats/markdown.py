"""Tables as Markdown."""

from __future__ import annotations

from twofold.report.tables.formats.texts import Marks, aside_text, lines_of, own_text, shown_heads
from twofold.report.tables.model import Block, Number, StudyTable
from twofold.report.tables.notes import notes
from twofold.report.text import inert_markdown, markdown_table


def markdown_tables(table: StudyTable) -> str:
    profile = f" (profile {table.profile})" if table.profile else ""
    parts = [f"**{table.title}**{profile}"]
    parts += [_block(block, table.marks()) for block in table.blocks]
    parts.append("\n".join(f"- {note}" for note in notes(table)))
    return inert_markdown("\n\n".join(parts) + "\n")


def _block(block: Block, marks: Marks) -> str:
    def marked(number: Number | None) -> str:
        text = own_text(number)
        if number and number.bold:
            text = f"**{text}**"
        if number and number.used:
            text = f"*{text}*"
        return f"{text} {aside_text(number, marks)}".strip()

    lines = [[*block.heads, *block.columns]]
    for heads, row in zip(shown_heads(block), block.rows, strict=True):
        for k, (label, texts) in enumerate(lines_of(row, marked)):
            lines.append([*(heads if k == 0 else [""] * len(heads)), label, *texts])
    text = markdown_table(lines, left=len(block.heads))
    about = f" ({block.about})" if block.about else ""
    return f"**{block.title}**{about}\n\n{text}" if block.title else text
