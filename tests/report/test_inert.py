"""Names in runs have no effect in CSV, Markdown, LaTeX or HTML, whoever wrote them."""

from __future__ import annotations

import csv
import io

import pytest

from twofold.report.text import html_text, inert_cell, inert_markdown, latex_text


@pytest.mark.parametrize(
    "text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-1+cmd|'/C x'!A0", "\t="]
)
def test_a_cell_is_no_formula(text):
    file = io.StringIO()
    csv.writer(file).writerow([inert_cell(text)])
    (row,) = csv.reader(io.StringIO(file.getvalue()))
    assert row[0] == f"'{text}"


@pytest.mark.parametrize("value", [-1.5, 3, None, True, "er+gem", "-1.5 0.25", "-1e-05 2", "+3"])
def test_numbers_and_names_are_cells_as_they_are(value):
    assert inert_cell(value) == value


def test_markdown_has_no_links_and_no_html():
    text = inert_markdown("a ![b](javascript:x) <img src=x> </td> <!-- c --> | d [a] | < 3")
    assert "](" not in text
    assert "&lt;img" in text
    assert "&lt;/td>" in text
    assert text.endswith("| d [a] | < 3")


def test_latex_has_no_commands():
    assert latex_text(r"\input{/etc/passwd}") == r"\textbackslash{}input\{/etc/passwd\}"


def test_html_has_no_markup():
    assert "<img" not in html_text("<img src=x onerror=alert(1)>")
