"""Printed numbers are found by their address."""

from __future__ import annotations

import pytest

from twofold.compare.reference import Printed, printed
from twofold.method import Method


def test_a_method_may_be_written_in_any_way() -> None:
    number = printed("rotated-mnist", "offline", "sgd+er", "min", 0.1, 128)
    assert number == Printed(83.1, 0.5)


@pytest.mark.parametrize(
    ("benchmark", "metric", "lr"),
    [("mine", "min", 0.1), ("rotated-mnist", "gap_depth", 0.1), ("rotated-mnist", "min", 0.123)],
)
def test_no_method_is_read_where_no_paper_prints_a_number(
    benchmark: str, metric: str, lr: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading methods took most of the time of a page."""
    assert printed("rotated-mnist", "offline", "er", "min", 0.1, 128)  # reads the papers' numbers
    monkeypatch.setattr(Method, "parse", lambda text: pytest.fail(f"{text} was read"))
    assert printed(benchmark, "offline", "er", metric, lr, 128) is None
