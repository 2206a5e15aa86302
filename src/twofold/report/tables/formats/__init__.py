"""Tables as text: Markdown, LaTeX (booktabs), HTML, and CSV and JSON for programs."""

from twofold.report.rendering import Renderer
from twofold.report.tables.formats.data import csv_table, json_table
from twofold.report.tables.formats.html import html_table
from twofold.report.tables.formats.latex import latex_table
from twofold.report.tables.formats.markdown import markdown_tables
from twofold.report.tables.model import StudyTable

render: Renderer[StudyTable] = Renderer(
    {
        "md": markdown_tables,
        "latex": latex_table,
        "csv": csv_table,
        "json": json_table,
        "html": html_table,
    }
)

__all__ = ["render"]
