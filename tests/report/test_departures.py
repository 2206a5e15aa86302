"""The effects of departures as text."""

from __future__ import annotations

import csv
import io
import json

import pytest
from helpers.runs import grouped, seeded

from twofold.compare.departures import Effect, effects
from twofold.errors import UserError
from twofold.report.departures import render

TEXT = [80.0, 81.0, 82.0]


def made_effects() -> list[Effect]:
    less = {"eval_schedule": "every:10", "eval_size": 100}
    code = seeded("er", [81.0, 83.0, 85.0], memory_grouping="class", **less)
    return effects(grouped(seeded("er", TEXT, **less), code))


def test_the_table_says_what_they_are() -> None:
    text = render(made_effects())
    row = "| D1         | rotated-mnist | offline | 0.1 | 128 | er     | MIN    | ≤ 81.0 | ≤ 83.0 |"
    assert row in text
    assert "- D1: one memory for all tasks of Rotated MNIST." in text
    assert "D2" not in text
    assert (
        "MIN of rotated-mnist offline is an upper bound (≤), evaluated every 10 iterations" in text
    )
    differs = (
        "MIN of rotated-mnist offline differs from the reference runs: evaluated on 100 images"
    )
    assert text.count("differs from") == text.count(differs) == 1
    with pytest.raises(UserError, match="did you mean 'csv'"):
        render(made_effects(), "cvs")


def test_csv_and_json_have_it_in_full() -> None:
    all_effects = made_effects()
    records = list(csv.DictReader(io.StringIO(render(all_effects, "csv"))))
    assert [record["effect"] for record in records] == [str(each.effect) for each in all_effects]
    assert records[0]["commands"].count("twofold run rotated-mnist er") == 2
    assert json.loads(render(all_effects, "json"))[0]["departures"] == ["D1"]
