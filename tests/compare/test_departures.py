"""Effects of departures: which runs are compared, worked by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from helpers.runs import grouped, seeded

from twofold import configure
from twofold.compare.departures import effects, in_force

TEXT = [80.0, 81.0, 82.0]
CUMULATIVE = "er+gem(references=cumulative)"


def names(benchmark: str, method: str, **options: Any) -> list[str]:
    return list(in_force(configure(benchmark, method, **options)))


def test_what_the_authors_did_not_do_is_no_departure() -> None:
    assert names("rotated-mnist", "joint(keep=5000)") == []
    other = seeded("joint(keep=5000)", [70.0, 71.0, 72.0])
    code = seeded("joint", TEXT, profile="published", whitening="train")
    (low, _) = effects(grouped(seeded("joint", TEXT), other, code))
    assert (low.departures, low.text, low.effect) == (("D4",), 81, 0)


def test_runs_evaluated_on_fewer_images_do_not_count_beside_full_ones() -> None:
    runs = [
        seeded("er", TEXT, eval_size=size, **options)
        for size in (100, 1000)
        for options in ({}, {"memory_grouping": "class"})
    ]
    assert [each.remarks for each in effects(grouped(*runs))] == [(), ()]


def test_a_component_that_is_not_available_is_no_hindrance() -> None:
    config = configure("rotated-mnist", "er", profile="published")
    other = dataclasses.replace(config, components=[*config.components, ("mine", {})])
    assert list(in_force(other)) == ["D1", "D6"]


def test_reductions_of_both_partners_are_reported() -> None:
    text = seeded("er", TEXT, eval_precision="bf16")
    text[0].summary["audit"] = {"images": 2000, "differences": 3}
    (low, _) = effects(grouped(text, seeded("er", TEXT, memory_grouping="class")))
    assert low.remarks == ("evaluated in bf16 (3 of 2,000 audited predictions differ from fp32)",)


def test_an_effect_by_hand() -> None:
    code = seeded("er", [81.0, 83.0, 85.0], [90, 90, 90], memory_grouping="class")
    all_effects = effects(grouped(seeded("er", TEXT, [93, 92, 91]), code))
    low, avg = all_effects
    assert (low.departures, low.metric, low.method) == (("D1",), "min", "er")
    assert (low.text, low.code, low.effect) == (81, 83, 2)  # 1, 2, 3: as in the verdicts' test
    assert low.p == pytest.approx(0.0742, abs=1e-4)
    assert low.interval is not None
    assert low.interval[0] < 0 < low.interval[1]
    assert (avg.metric, avg.effect) == ("avg", pytest.approx(-2))


def test_only_seeds_that_both_have_count() -> None:
    code = seeded("er", [81.0, 83.0], memory_grouping="class")
    (low, _) = effects(grouped(seeded("er", TEXT), code))
    assert (low.text, low.code, len(low.seeds)) == (80.5, 82, 2)
    assert (low.interval, low.p) == (None, None)


@pytest.mark.parametrize("other", [{"lr": 0.01}, {"eval_schedule": "every:10"}, {"momentum": 0.5}])
def test_all_else_must_be_the_same(other: dict[str, Any]) -> None:
    code = seeded("er", TEXT, memory_grouping="class")
    assert effects(grouped(seeded("er", TEXT, **other), code)) == []


def test_departures_add_up_and_each_is_compared_with_the_text() -> None:
    all_effects = effects(
        grouped(
            seeded("er+gem", TEXT),
            seeded(CUMULATIVE, [81.0, 82.0, 83.0]),
            seeded("er+gem", [83.0, 84.0, 85.0], profile="published", eval_precision="bf16"),
        )
    )
    lows = {each.departures: each.effect for each in all_effects if each.metric == "min"}
    assert lows == {("D2",): pytest.approx(1), ("D2", "D6"): pytest.approx(3)}
