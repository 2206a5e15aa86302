"""Tables as text in five formats, and the command that makes them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from helpers.runs import grouped, seeded

from twofold.report.tables import StudyTable, render, study_table


@pytest.fixture(scope="module")
def small() -> StudyTable:
    runs = [
        seeded("er", [82, 84], [91, 92]),
        seeded("er+gem", [80, 90], [93, 94]),
        seeded("joint", [86, 87], eval_schedule="every:10"),
    ]
    return study_table("main", grouped(*runs))


def test_markdown_columns_are_aligned(small: StudyTable) -> None:
    lines = [line for line in render(small, "md").splitlines() if line.startswith("|")]
    assert all(len(one) == len(other) for one, other in pairwise(lines))
