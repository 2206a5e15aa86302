"""Tables as text: Markdown, LaTeX (booktabs), HTML, and for programs CSV and JSON."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import Any

from twofold.report.notes import notes
from twofold.report.studytables import Block, Number, Row, StudyTable
from twofold.report.text import EMPTY, html_text, latex_text, markdown_table, signed, value_text

Marks = dict[tuple[str, ...], str]


def own_text(number: Number | None) -> str:
    """A number without its remarks."""
    if number is None or number.value is None:
        return EMPTY
    return number.sign + value_text(*number.value, number.metric.decimals)


def aside_text(number: Number | None, marks: Marks) -> str:
    """`(n=3, 1 diverged) [a]`."""
    if number is None or number.value is None:
        return ""
    words = [f"n={len(number.seeds)}"] if len(number.seeds) != number.wanted else []
    words += [f"{number.diverged} diverged"] if number.diverged else []
    parts = [f"({', '.join(words)})"] if words else []
    parts += [f"[{marks[number.remarks]}]"] if number.remarks else []
    return " ".join(parts)


def paper_text(number: Number | None) -> str:
    if number is None or number.printed is None:
        return ""
    return value_text(*number.printed, number.metric.decimals)


def difference_text(number: Number | None) -> str:
    """`−2.0 (2.3 se)`."""
    if number is None or number.difference is None:
        return ""
    text = number.sign + signed(number.difference, number.metric.decimals)
    apart = number.errors_apart
    return text + (f" ({apart:.1f} se)" if apart is not None else "")


def caption(table: StudyTable, block: Block) -> str:
    parts = [table.title, block.title, f"Profile {table.profile}"]
    return ". ".join(filter(None, parts)) + "."


def _lines(row: Row, marked: Callable[[Number | None], str]) -> list[tuple[str, list[str]]]:
    """A row as lines of texts: the runs', and below the paper's and the difference, if any."""
    lines = [(row.heads[-1], [marked(number) for number in row.numbers])]
    for label, text in (("paper", paper_text), ("difference", difference_text)):
        texts = [text(number) for number in row.numbers]
        if any(texts):
            lines.append((label, texts))
    return lines


def _shown_heads(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The heads of each row but for the last, blank where they repeat those above."""
    shown: list[tuple[str, ...]] = []
    above: tuple[str, ...] = ()
    for row in rows:
        heads = row.heads[:-1]
        pairs = zip(heads, above, strict=False)
        repeated = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        shown.append(("",) * repeated + heads[repeated:])
        above = heads
    return shown


# Markdown


def _markdown(table: StudyTable) -> str:
    parts = [f"**{table.title}** (profile {table.profile})"]
    parts += [_markdown_block(block, table.marks()) for block in table.blocks]
    parts.append("\n".join(f"- {note}" for note in notes(table)))
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block, marks: Marks) -> str:
    def marked(number: Number | None) -> str:
        text = own_text(number)
        if number and number.bold:
            text = f"**{text}**"
        if number and number.used:
            text = f"*{text}*"
        return f"{text} {aside_text(number, marks)}".strip()

    lines = [[*block.heads, *block.columns]]
    for heads, row in zip(_shown_heads(block.rows), block.rows, strict=True):
        for k, (label, texts) in enumerate(_lines(row, marked)):
            lines.append([*(heads if k == 0 else [""] * len(heads)), label, *texts])
    text = markdown_table(lines, left=len(block.heads))
    return f"**{block.title}**\n\n{text}" if block.title else text


# LaTeX


def _latex(table: StudyTable) -> str:
    marks = table.marks()
    parts = [r"% \usepackage{booktabs}"]
    for k, block in enumerate(table.blocks):
        label = f"tab:{table.name}" + (f"-{k + 1}" if len(table.blocks) > 1 else "")
        parts.append(_latex_block(block, latex_text(caption(table, block)), label, marks))
    below = "\n\n".join(latex_text(note) for note in notes(table))
    return "\n\n".join([*parts, rf"{{\footnotesize\noindent {below}\par}}"]) + "\n"


def _latex_block(block: Block, caption: str, label: str, marks: Marks) -> str:
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
    for heads, row in zip(_shown_heads(block.rows), block.rows, strict=True):
        if row is block.rows[0] or any(heads[:1]):
            lines.append(r"\midrule")
        elif any(heads):
            lines.append(rf"\cmidrule{{2-{left + len(block.columns)}}}")
        for k, (name, texts) in enumerate(_lines(row, marked)):
            shown = [*(heads if k == 0 else [""] * len(heads)), name]
            cells = [*map(latex_text, shown), *(texts if k == 0 else map(latex_text, texts))]
            if k:
                cells = [rf"\scriptsize {cell}" if cell else "" for cell in cells]
            lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


# HTML


def _html(table: StudyTable) -> str:
    blocks = [_html_block(block, caption(table, block), table.marks()) for block in table.blocks]
    below = "\n".join(f"<li>{html_text(note)}</li>" for note in notes(table))
    text = "\n".join([*blocks, f'<ul class="notes">\n{below}\n</ul>']) + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode()  # right in a page of any encoding


def _html_block(block: Block, caption: str, marks: Marks) -> str:
    heads = "".join(f'<th scope="col">{html_text(head)}</th>' for head in block.heads)
    starts = set(accumulate(block.groups, initial=0))
    columns = "".join(
        f'<th scope="col"{_start(k in starts)}>{html_text(column)}</th>'
        for k, column in enumerate(block.columns)
    )
    body = [
        f"<tr>{_html_heads(block.rows, k)}"
        + "".join(_html_cell(n, j in starts, marks) for j, n in enumerate(row.numbers))
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
    """Where a group of columns begins."""
    return ' class="group"' if first else ""


def _html_heads(rows: Sequence[Row], k: int) -> str:
    """The head cells that begin in a row: those that rows below share span them."""
    made = []
    for depth, head in enumerate(rows[k].heads, 1):
        own = rows[k].heads[:depth]
        if k and rows[k - 1].heads[:depth] == own:
            continue
        span = sum(row.heads[:depth] == own for row in rows)
        scope = f'scope="rowgroup" rowspan="{span}"' if span > 1 else 'scope="row"'
        made.append(f"<th {scope}>{html_text(head)}</th>")
    return "".join(made)


def _html_cell(number: Number | None, first: bool, marks: Marks) -> str:
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
        ("paper", paper_text(number)),
        ("difference", difference_text(number)),
    ):
        lead = "paper " if name == "paper" else ""
        parts += [f'<small class="{name}">{lead}{html_text(text)}</small>'] if text else []
    return f"<td{attributes}>{' '.join(parts)}</td>"


# For programs


def records(table: StudyTable) -> list[dict[str, Any]]:
    """A flat record a number, in full precision."""
    return [_record(table, number) for number in table.numbers()]


def _record(table: StudyTable, number: Number) -> dict[str, Any]:
    mean, error = number.value or (None, None)
    theirs, their_error = number.printed or (None, None)
    setting = number.section.setting
    return {
        "table": table.name,
        "profile": table.profile,
        "benchmark": number.section.place.benchmark,
        "mode": number.section.place.mode,
        "lr": setting.lr,
        "batch_size": setting.batch_size,
        "method": number.method,
        "metric": number.metric.key,
        "mean": mean,
        "sem": error,
        "seeds": number.seeds,
        "diverged": number.diverged,
        "bound": number.sign.strip(),
        "reduced": "; ".join(filter(None, (*number.remarks, number.bound))),
        "bold": number.bold,
        "used": number.used,
        "paper_mean": theirs,
        "paper_sem": their_error,
        "difference": number.difference,
        "errors_apart": number.errors_apart,
        "command": number.command,
    }


def _json(table: StudyTable) -> str:
    whole = {"table": table.name, "title": table.title, "profile": table.profile}
    return json.dumps({**whole, "notes": notes(table), "numbers": records(table)}, indent=2) + "\n"


def _csv(table: StudyTable) -> str:
    file = io.StringIO()
    rows = [{**record, "seeds": " ".join(map(str, record["seeds"]))} for record in records(table)]
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


FORMATS: dict[str, Callable[[StudyTable], str]] = {
    "md": _markdown,
    "latex": _latex,
    "csv": _csv,
    "json": _json,
    "html": _html,
}
