"""Tables as LaTeX."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.tables import timed

from twofold.compare.groups import Group, groups
from twofold.report.tables import render, study_table
from twofold.report.text import latex_text


def test_latex_rows_are_as_wide_as_their_head(papers: list[Group]) -> None:
    for name in ("main", "sota", "appendix"):
        text = render(study_table(name, papers), "latex")
        assert text.isascii()
        for part in text.split(r"\begin{tabular}")[1:]:
            columns = part[: part.index("\n")].strip("{}").replace(" ", "")
            lines = [
                line
                for line in part.split(r"\end{tabular}")[0].splitlines()
                if line.endswith(r"\\")
            ]
            assert {line.count(" & ") + 1 for line in lines} == {len(columns)}
            assert part.count(r"\toprule") == part.count(r"\bottomrule") == 1


LATEX = next((name for name in ("pdflatex", "tectonic", "lualatex") if shutil.which(name)), None)


@pytest.mark.skipif(LATEX is None, reason="with LaTeX (apt install texlive-latex-recommended)")
def test_latex_compiles(papers: list[Group], tmp_path: Path) -> None:
    assert LATEX is not None
    runs = [run for cell in papers for run in cell.runs]
    all_groups = groups([*runs, *timed("er", 10, 12), *timed("er+gem", 22, 44)])
    named = ("main", "sota", "timing", "gamma", "appendix")
    tables = "\\clearpage\n".join(render(study_table(name, all_groups), "latex") for name in named)
    names = latex_text("er+mine(a_b=1%,c=#2&{3}) ~ ^ $ \\")
    start = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "table.tex").write_text(f"{start}{tables}{names}\n\\end{{document}}\n")
    options = [] if LATEX == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    process = subprocess.run([LATEX, *options, "table.tex"], cwd=tmp_path, capture_output=True)
    assert process.returncode == 0, process.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 0
