"""Figures from finished runs. One file a figure; a file added here is found."""

from twofold.discovery import import_all
from twofold.report.figures.base import KINDS, Kind, Shown, find_kind
from twofold.report.figures.compare import compare_figure
from twofold.report.figures.gamma import gamma_figure
from twofold.report.figures.gap import gap_figure
from twofold.report.figures.joint import joint_figure
from twofold.report.figures.picking import NARROWERS, select_runs
from twofold.report.figures.projection_rule import projection_rule_figure
from twofold.report.figures.style import check_format, save_figure

import_all(__name__, __path__)

__all__ = [
    "KINDS",
    "NARROWERS",
    "Kind",
    "Shown",
    "check_format",
    "compare_figure",
    "find_kind",
    "gamma_figure",
    "gap_figure",
    "joint_figure",
    "projection_rule_figure",
    "save_figure",
    "select_runs",
]
