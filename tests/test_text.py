"""Numbers as text."""

from __future__ import annotations

import pytest

from twofold.text import mean_text, signed


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "+0.2"), (-2.03, "−2.0"), (0.04, "0.0"), (-0.04, "0.0"), (0, "0.0")]
)
def test_signs(value: float, text: str) -> None:
    assert signed(value) == text


def test_the_mean_of_the_values_that_exist() -> None:
    assert mean_text([90.0, None, 94.0]) == "92.0 ± 2.0"
    assert mean_text([93.64]) == "93.6"
    assert (mean_text([]), mean_text([None]), mean_text([], "-")) == ("–", "–", "-")
