"""Departures of the authors' code from the paper's text."""

from __future__ import annotations

from typing import Any

import pytest

from twofold import configure
from twofold.compare.departures import by_the_text, in_force

CUMULATIVE = "er+gem(references=cumulative)"


def names(benchmark: str, method: str, **options: Any) -> list[str]:
    return list(in_force(configure(benchmark, method, **options)))


@pytest.mark.parametrize(
    ("benchmark", "method", "expected"),
    [
        ("rotated-mnist", "er", ["D1", "D6"]),
        ("rotated-mnist", "er+gem", ["D2", "D6"]),
        ("rotated-mnist", "er+agem", ["D1", "D5", "D6"]),
        ("rotated-mnist", "joint", ["D4", "D6"]),  # it stores all, however that is grouped
        ("rotated-mnist", "joint+gem", ["D2", "D6"]),
        ("rotated-mnist", "der", ["D1", "D6", "D7"]),
        ("rotated-mnist", "finetune", ["D6"]),  # it has no memory
        ("rotated-mnist", "finetune+clip(1.0)", ["D6"]),
        ("rotated-mnist", "agem", ["D1", "D5", "D6"]),
        ("split-cifar100", "er", ["D6"]),
        ("split-cifar100", "er+gem", ["D2", "D6"]),
        ("split-cifar100", "bic+agem", ["D6", "D7"]),
    ],
)
def test_what_is_in_force(benchmark: str, method: str, expected: list[str]) -> None:
    """The expected departures are those of docs/profiles.md."""
    assert names(benchmark, method) == []
    assert names(benchmark, method, profile="published") == expected


def test_a_departure_alone() -> None:
    assert names("rotated-mnist", "er", memory_grouping="class") == ["D1"]
    assert names("rotated-mnist", CUMULATIVE) == ["D2"]
    assert names("rotated-mnist", "er", whitening="published") == ["D6"]
    assert names("rotated-mnist", "joint(keep=20000)") == ["D4"]


@pytest.mark.parametrize("benchmark", ["rotated-mnist", "split-cifar100"])
@pytest.mark.parametrize("method", ["er", "er+gem", "gem", "joint+agem", "der+agem", "agem"])
def test_without_departures_the_published_profile_is_the_papers(
    benchmark: str, method: str
) -> None:
    """The profile follows from the list of departures, and taking them back gives the text."""
    published = by_the_text(configure(benchmark, method, profile="published"))
    paper = configure(benchmark, method)
    assert published.identity() == paper.identity()
