"""Tables as Markdown."""

from __future__ import annotations

from itertools import pairwise

from twofold.report.tables import StudyTable, render


def test_markdown_columns_are_aligned(small: StudyTable) -> None:
    lines = [line for line in render(small, "md").splitlines() if line.startswith("|")]
    assert all(len(one) == len(other) for one, other in pairwise(lines))
