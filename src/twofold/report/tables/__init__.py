"""Tables of studies: layouts, which papers declare; numbers from runs; notes; formats."""

from twofold.report.tables.building import study_table
from twofold.report.tables.formats import render
from twofold.report.tables.layouts import tables
from twofold.report.tables.model import StudyTable
from twofold.report.tables.notes import notes
from twofold.report.tables.runs import runs_table

__all__ = ["StudyTable", "notes", "render", "runs_table", "study_table", "tables"]
