"""Numbers as text."""

from __future__ import annotations

import pytest

from twofold.text import interval_text, mean_text, signed, spoken


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "+0.2"), (-2.03, "−2.0"), (0.04, "0.0"), (-0.04, "0.0"), (0, "0.0")]
)
def test_signs(value: float, text: str) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((-0.34, 2.0), "−0.3 to +2.0"),
        ((-0.02, 0.24), "−0.02 to +0.24"),
        ((-0.006, 0.182), "−0.01 to +0.18"),
        ((-0.004, 0.182), "−0.004 to +0.182"),
        ((0.0, 0.0), "0.0 to 0.0"),
        (None, "–"),
    ],
)
def test_an_interval_shows_on_which_side_of_zero_it_ends(ends, text: str) -> None:
    assert interval_text(ends) == text


def test_the_mean_of_the_values_that_exist() -> None:
    assert mean_text([90.0, None, 90.0, 96.0]) == "92.0 ± 2.0"  # deviations -2, -2 and 4
    assert mean_text([90.0, 94.0]) == "92.0"
    assert mean_text([93.64]) == "93.6"
    assert (mean_text([]), mean_text([None]), mean_text([], "-")) == ("–", "–", "-")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1 s"), (40.4, "40 s"), (59.7, "1 min"), (89, "1.5 min"), (130, "2 min"),
        (596, "10 min"), (3569, "59 min"), (3571, "1 h 0 min"), (12_000, "3 h 20 min"),
        (86_400, "1 d 0 h"), (187_200, "2 d 4 h"), (2_600_000, "30 d"),
    ],
)  # fmt: skip
def test_times_in_words(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
