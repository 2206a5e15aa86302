"""Tables of studies and stores: layouts, which papers declare; numbers; notes; formats."""

from twofold.report.tables.building import study_table
from twofold.report.tables.formats import render
from twofold.report.tables.layouts import tables
from twofold.report.tables.model import StudyTable
from twofold.report.tables.notes import notes
from twofold.report.tables.store import store_table

__all__ = ["StudyTable", "notes", "render", "store_table", "study_table", "tables"]
