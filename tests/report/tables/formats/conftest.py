"""A small table for all formats."""

from __future__ import annotations

import pytest
from helpers.runs import grouped, seeded

from twofold.report.tables import StudyTable, study_table


@pytest.fixture(scope="session")
def small() -> StudyTable:
    runs = [
        seeded("er", [82, 83, 84], [91, 91.5, 92]),
        seeded("er+gem", [80, 85, 90], [93, 93.5, 94]),
        seeded("joint", [86, 86.5, 87], eval_schedule="every:10"),
    ]
    return study_table("main", grouped(*runs))
