"""replication/decisions.py: labels by the margin, numbers of the deciding runs, one family."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from helpers.runs import curve_run, gap_accuracies, grouped, seeded

from twofold.compare.groups import Group
from twofold.compare.statistics import MOST, Comparison, compare

FOLDER = Path(__file__).parents[2] / "replication"
BASE = [80.0, 81.0, 82.5, 83.0, 81.5]  # MIN of ER by seed
SPREAD = [-0.2, 0.1, 0.0, 0.2, -0.1]  # without a mean


@pytest.fixture(scope="module")
def decisions() -> ModuleType:
    with mock.patch.object(sys, "path", [str(FOLDER), *sys.path]):
        return importlib.import_module("decisions")


def result(low: float, high: float, needed: int | None = None) -> Comparison:
    outcome: Any = "undecided" if needed else "effect" if low > 0 or high < 0 else "equivalent"
    return Comparison((low + high) / 2, outcome, (low, high), seeds_needed=needed)


def group(method: str, lows: Sequence[float], **options: Any) -> Group:
    (found,) = grouped(seeded(method, lows, **options))
    return found


def shifted(by: float) -> list[float]:
    return [low + by + own for low, own in zip(BASE, SPREAD, strict=True)]


@pytest.mark.parametrize(
    ("claim", "low", "high", "label"),
    [
        ("raises", 0.1, 0.4, "an effect of less than 0.5 points"),
        ("raises", 0.1, 0.7, "holds, perhaps by less than 0.5 points"),
        ("raises", 0.6, 0.9, "holds"),
        ("raises", -0.4, 0.4, "no effect as large as 0.5 points"),
        ("raises", -0.4, -0.1, "does not hold"),
        ("raises", -0.9, -0.6, "does not hold"),
        ("raises", -0.1, 0.7, None),
        ("lowers", -0.4, -0.1, "an effect of less than 0.5 points"),
        ("lowers", -0.9, -0.1, "holds, perhaps by less than 0.5 points"),
        ("lowers", -0.9, -0.6, "holds"),
        ("lowers", -0.4, 0.4, "no effect as large as 0.5 points"),
        ("lowers", 0.1, 0.7, "does not hold"),
        ("lowers", -0.7, 0.1, None),
        ("nothing", -0.4, 0.4, "no effect as large as 0.5 points"),
        ("nothing", 0.1, 0.4, "an effect of less than 0.5 points"),
        ("nothing", -0.5, -0.1, "an effect of less than 0.5 points"),
        ("nothing", 0.1, 0.7, "does not hold, perhaps by less than 0.5 points"),
        ("nothing", -0.7, -0.1, "does not hold, perhaps by less than 0.5 points"),
        ("nothing", 0.6, 0.9, "does not hold"),
        ("nothing", -0.9, -0.6, "does not hold"),
        ("nothing", -0.1, 0.7, None),
        ("not raises", -0.4, 0.4, "no effect as large as 0.5 points"),
        ("not raises", -2.0, 0.4, "no rise as large as 0.5 points"),
        ("not raises", -2.0, -0.1, "holds"),
        ("not raises", 0.1, 0.4, "an effect of less than 0.5 points"),
        ("not raises", 0.1, 0.7, "does not hold, perhaps by less than 0.5 points"),
        ("not raises", 0.6, 0.9, "does not hold"),
        ("not raises", -0.1, 0.7, None),
    ],
)
def test_the_margin_decides(decisions, claim, low, high, label):
    needed = None if label else 33
    shown = decisions.decided(claim, result(low, high, needed), 24, 0.5)
    assert shown == (label or "needs 33 new seeds")


def test_few_and_many_seeds(decisions):
    assert decisions.decided("raises", Comparison(-11.0), 2, 0.5) == "too few seeds"
    more = decisions.decided("raises", result(-0.1, 0.7, MOST + 1), 5, 0.5)
    assert more == "needs more than 1,000 new seeds"


@pytest.mark.parametrize(
    ("difference", "label"), [(0.0, "no effect as large as 1 point"), (2.0, "needs more seeds")]
)
def test_without_any_spread(decisions, difference, label):
    (compared,) = compare([[difference] * 3], 1.0)
    assert decisions.decided("nothing", compared, 3, 1.0) == label


@pytest.mark.parametrize(
    ("low", "high", "needed", "label"),
    [
        (0.6, 0.9, None, "suggested (exploratory)"),
        (-0.9, -0.6, None, "not suggested (exploratory)"),
        (0.1, 0.4, None, "an effect of less than 0.5 points (exploratory)"),
        (-0.1, 0.7, 9, "needs 9 new seeds (exploratory)"),
    ],
)
def test_exploratory_comparisons_suggest(decisions, low, high, needed, label):
    compared = result(low, high, needed)
    assert decisions.decided("raises", compared, 5, 0.5, decisions.EXPLORATORY) == label


def test_all_exploratory_comparisons_of_a_metric_are_one_family(decisions):
    one, other = group("er", BASE), group("er+gem", shifted(3))
    difference = decisions.Difference("raises", "min", "MIN", one, other)
    alone = decisions.explored({"one": difference})
    average = difference._replace(metric="avg")
    three = decisions.explored({"one": difference, "two": difference, "avg": average})
    (wide,) = compare([[3 + own for own in SPREAD]], 1.0, 2)
    low, high = wide.interval
    expected = f"MIN changes by +3.00 (+{low:.2f} to +{high:.2f}) over 5 seeds"
    assert three["one"] == three["two"] == f"**Suggested (exploratory)**: {expected}"
    assert alone["one"] != three["one"]
    assert list(three) == ["one", "two", "avg"]


def test_numbers_are_over_the_seeds_that_all_have(decisions):
    few, many = group("er", BASE[:3]), group("er+gem", shifted(1))
    spread = np.std(shifted(1)[:3], ddof=1) / np.sqrt(3)
    second = f"{np.mean(shifted(1)[:3]):.1f} ± {spread:.1f}"
    assert decisions.means("min", few, many) == f"81.2 ± 0.7 and {second} (3 seeds)"


def test_two_seeds_have_no_error(decisions):
    assert decisions.means("avg", group("er", BASE[:2])) == "90.5 (2 seeds)"


def test_a_bound_has_its_sign(decisions):
    thinned = group("er", BASE[:2], eval_schedule="dense:50:100")
    assert decisions.means("min", thinned) == "≤ 80.5 (2 seeds)"
    assert decisions.means("avg", thinned) == "90.5 (2 seeds)"
    known = group("er", BASE[:2], eval_schedule="exact-min:20")
    assert decisions.means("min", known) == "80.5 (2 seeds)"
    curves = [curve_run("er", gap_accuracies(60, 3, 1), eval_schedule="dense:5:2")]
    assert decisions.means("measures.gap_depth", *grouped(curves)).startswith("≥ ")


def test_a_primary_comparison_and_its_numbers_are_of_one_store(decisions, monkeypatch):
    new, old = (grouped(seeded("er", BASE), seeded("er+gem", shifted(by))) for by in (0.4, 5))
    monkeypatch.setattr(decisions, "stored", {"new": new, "old": old}.__getitem__)
    for store, change in (("new", 0.4), ("old", 5)):
        place = decisions.Place(store)
        shown = decisions.primary("raises", "min", "er+gem", place, " offline")
        label = "Holds" if store == "old" else "An effect of less than 1 point"
        assert shown.startswith(f"**{label}**: MIN offline changes by +{change:.2f} (")
        first, second = re.findall(r"([\d.]+) ±", place.means("min", "er", "er+gem"))
        assert float(second) - float(first) == pytest.approx(change, abs=0.101)
    with pytest.raises(SystemExit, match="joint has 0 settings"):
        decisions.Place("old").group("joint")
