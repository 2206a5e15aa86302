"""docs/matrix.py: what it reports of an entry."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

counts = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "matrix.py"))["counts"]


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("..\n2 passed in 1.0s\nNot tested: 1 test in a browser\n", "2 passed in 1.0s"),
        ("F\n=== 1 failed, 3 passed in 1.0s ===\n", "1 failed, 3 passed in 1.0s"),
        ("ImportError: no torch\n\n", "ImportError: no torch"),
        ("", "no output"),
    ],
)
def test_the_report_is_the_line_of_counts(printed: str, line: str) -> None:
    assert counts(printed) == line
