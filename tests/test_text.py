"""Numbers as text."""

from __future__ import annotations

import pytest

from twofold.text import signed


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "+0.2"), (-2.03, "−2.0"), (0.04, "0.0"), (-0.04, "0.0"), (0, "0.0")]
)
def test_signs(value: float, text: str) -> None:
    assert signed(value) == text
