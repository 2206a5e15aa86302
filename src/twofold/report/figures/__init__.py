"""Figures from finished runs. A file added here or to a paper's figures is found."""

from twofold import papers
from twofold.compare.selection import NARROWERS, select_runs
from twofold.discovery import import_all
from twofold.drawing.style import check_format, save_figure
from twofold.report.figures.base import KINDS, Kind, Shown, find_kind
from twofold.report.figures.compare import compare_figure
from twofold.report.figures.gap import gap_figure

import_all(__name__, __path__)
papers.modules("figures")

__all__ = [
    "KINDS",
    "NARROWERS",
    "Kind",
    "Shown",
    "check_format",
    "compare_figure",
    "find_kind",
    "gap_figure",
    "save_figure",
    "select_runs",
]
