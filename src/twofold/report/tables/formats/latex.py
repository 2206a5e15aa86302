"""Tables as LaTeX, with booktabs."""

from __future__ import annotations

from twofold.report.tables.formats.texts import (
    Marks,
    aside_text,
    caption,
    lines_of,
    own_text,
    shown_heads,
)
from twofold.report.tables.model import Block, Number, StudyTable
from twofold.report.tables.notes import notes
from twofold.report.text import latex_text


def latex_table(table: StudyTable) -> str:
    marks = table.marks()
    parts = [r"% \usepackage{booktabs}"]
    for k, block in enumerate(table.blocks):
        label = f"tab:{table.name}" + (f"-{k + 1}" if len(table.blocks) > 1 else "")
        parts.append(_block(block, latex_text(caption(table, block)), label, marks))
    below = "\n\n".join(latex_text(note) for note in notes(table))
    return "\n\n".join([*parts, rf"{{\footnotesize\noindent {below}\par}}"]) + "\n"


def _block(block: Block, caption: str, label: str, marks: Marks) -> str:
    def marked(number: Number | None) -> str:
        text = latex_text(own_text(number))
        if number and number.bold:
            text = rf"\textbf{{\boldmath {text}}}"
        if number and number.used:
            text = rf"\textit{{{text}}}"
        return f"{text} {latex_text(aside_text(number, marks))}".strip()

    left = len(block.heads)
    columns = "l" * left + " ".join("r" * size for size in block.groups)
    lines = [
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{caption}}}\label{{{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(latex_text, [*block.heads, *block.columns])) + r" \\",
    ]
    for heads, row in zip(shown_heads(block), block.rows, strict=True):
        if row is block.rows[0] or (block.spans and any(heads[:1])):
            lines.append(r"\midrule")
        elif block.spans and any(heads):
            lines.append(rf"\cmidrule{{2-{left + len(block.columns)}}}")
        for k, (name, texts) in enumerate(lines_of(row, marked)):
            shown = [*(heads if k == 0 else [""] * len(heads)), name]
            cells = [*map(latex_text, shown), *(texts if k == 0 else map(latex_text, texts))]
            if k:
                cells = [rf"\scriptsize {cell}" if cell else "" for cell in cells]
            lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])
