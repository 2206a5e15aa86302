"""Comparisons that a user asks for, as text."""

from __future__ import annotations

import dataclasses
import json

from twofold.compare.asked import Compared, Difference
from twofold.report.rendering import Renderer
from twofold.report.text import csv_text, html_text, inert_markdown, latex_text, markdown_table

NAMES = 2  # columns of names, before those of numbers


def _markdown(compared: Compared) -> str:
    table = markdown_table([compared.header, *compared.cells], left=NAMES)
    sentences = "\n".join(f"{k}. {text}" for k, text in enumerate(compared.sentences, 1))
    notes = "\n".join(f"- {note}" for note in compared.notes)
    title = f"**{compared.title}** ({compared.place})"
    return inert_markdown("\n\n".join([title, table, sentences, notes]) + "\n")


def _latex(compared: Compared) -> str:
    lines = [" & ".join(map(latex_text, line)) + r" \\" for line in compared.cells]
    numbers = "r" * (len(compared.header) - NAMES - 1)
    below = [*compared.sentences, *compared.notes]
    caption = latex_text(f"{compared.title} ({compared.place}).")
    parts = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{caption}}}\label{{tab:comparison}}",
        rf"\begin{{tabular}}{{{'l' * NAMES}{numbers}l}}",
        r"\toprule",
        " & ".join(map(latex_text, compared.header)) + r" \\",
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
        r"{\footnotesize\noindent " + "\n\n".join(map(latex_text, below)) + r"\par}",
    ]
    return "\n".join(parts) + "\n"


def _html(compared: Compared) -> str:
    def row(tag: str, texts: list[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{html_text(text)}</{tag}>' for text in texts)}</tr>"

    below = [f"<li>{html_text(text)}</li>" for text in (*compared.sentences, *compared.notes)]
    parts = [
        '<table class="comparison">',
        f"<caption>{html_text(f'{compared.title} ({compared.place})')}</caption>",
        f"<thead>{row('th', compared.header)}</thead>",
        "<tbody>",
        *(row("td", line) for line in compared.cells),
        "</tbody>",
        "</table>",
        '<ul class="notes">',
        *below,
        "</ul>",
    ]
    text = "\n".join(parts) + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode()  # right in a page of any encoding


def _csv(compared: Compared) -> str:
    return csv_text(Difference, compared.rows)


def _json(compared: Compared) -> str:
    whole = {
        "by": compared.by,
        "baseline": compared.baseline,
        "place": compared.place,
        "differences": [dataclasses.asdict(row) for row in compared.rows],
        "notes": compared.notes,
    }
    return json.dumps(whole, indent=2) + "\n"


render: Renderer[Compared] = Renderer(
    {"md": _markdown, "latex": _latex, "csv": _csv, "json": _json, "html": _html}
)
