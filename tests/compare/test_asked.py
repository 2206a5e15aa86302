"""Comparisons that a user asks for, against scipy and a worked example."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.measures import measured_run
from helpers.runs import scored_run, seeded
from scipy import stats

import twofold
from twofold import Run, UserError, comparison
from twofold.compare.asked import Compared, Difference
from twofold.compare.statistics import chance
from twofold.report.comparison import render

ER, GEM, JOINT = [80.0, 81.5, 79.0, 82.0, 80.5], [83, 83.5, 84, 86, 82.5], [90.0, 91, 92, 90, 89]


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    avgs = [91.0, 92.5, 90.0, 93.0, 91.0]
    return [*seeded("er", ER, avgs), *seeded("er+gem", GEM, avgs), *seeded("joint", JOINT)]


@pytest.fixture(scope="module")
def whole(runs: list[Run]) -> Compared:
    return comparison(runs, "er", "er+gem", "joint")


def one(compared: Compared, name: str, metric: str) -> Difference:
    (row,) = [row for row in compared.rows if (row.compared, row.metric) == (name, metric)]
    return row


@pytest.mark.parametrize(("name", "values"), [("er+gem", GEM), ("joint", JOINT)])
def test_it_agrees_with_scipy(whole: Compared, name: str, values: list[float]) -> None:
    row, test = one(whole, name, "min"), stats.ttest_rel(values, ER)
    assert row.p == pytest.approx(test.pvalue)
    assert row.p_corrected == pytest.approx(4 * test.pvalue)  # two methods, two metrics
    assert row.uncorrected == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert row.interval == pytest.approx(tuple(test.confidence_interval(1 - 0.05 / 4)))
    assert row.effect == pytest.approx(np.mean(values) - np.mean(ER))
    assert (row.baseline_mean, row.compared_mean) == (np.mean(ER), np.mean(values))


def test_a_worked_example() -> None:
    # Differences 1, 2, 3: mean 2, deviation 1, standard error 0.577; t(0.975, 2) is 4.303.
    runs = [*seeded("er", [80, 80, 80]), *seeded("er+gem", [81, 82, 83])]
    (row,) = comparison(runs, "er", "er+gem", metrics=["min"]).rows
    assert row.differences == (1, 2, 3)
    reach = 4.3027 / math.sqrt(3)
    assert row.uncorrected == pytest.approx((2 - reach, 2 + reach), 1e-4)
    assert row.interval == row.uncorrected  # one comparison needs no correction
    assert row.outcome == "undecided"
    assert row.result == f"needs {row.seeds_needed} new seeds"
    assert row.sentence.startswith(
        "Undecided: MIN of er+gem minus er is +2.0 points on average over 3 seeds, and −0.5 to +4.5"
    )


def test_power_is_of_the_corrected_test(whole: Compared) -> None:
    row = one(whole, "er+gem", "min")
    assert row.detectable is not None
    spread = float(np.std(row.differences, ddof=1))
    assert chance(row.detectable, spread, 5, 4) == pytest.approx(0.8, abs=1e-3)


def test_what_is_equal_and_what_is_higher_in_words(whole: Compared) -> None:
    equal, higher = one(whole, "er+gem", "avg"), one(whole, "joint", "min")
    assert equal.sentence == "er+gem and er have the same AVG with each of 5 seeds."
    assert (equal.result, equal.interval) == ("equal", None)
    assert higher.sentence.startswith("joint has a higher MIN than er: +9.8 points on average over")
    assert higher.result == "higher"
    reverse = comparison(twofold.Runs(seeded("er", ER) + seeded("joint", JOINT)), "joint", "er")
    assert reverse.rows[0].result == "lower"
    assert reverse.rows[0].effect == -higher.effect


def test_the_value_is_a_frame_a_text_and_a_page(whole: Compared) -> None:
    assert list(whole.frame["effect"]) == [row.effect for row in whole.rows]
    assert whole.title == "er+gem and joint compared with er"
    assert whole.place == "Rotated MNIST, offline, lr 0.1, batch 128, 5 seeds"
    assert str(whole).splitlines()[0] == f"{whole.title} ({whole.place})"
    assert str(whole).count("\n") == 4
    html = whole._repr_html_()
    assert html.count("<tr>") == 5
    assert "exploratory" in html
    assert "The 4 differences are one family" in whole.notes[0]


@pytest.mark.parametrize("format", ["md", "latex", "csv", "json", "html"])
def test_every_format_states_the_numbers(whole: Compared, format: str) -> None:
    text = render(whole, format)
    assert "joint" in text
    assert ("+9.8" if format in ("md", "latex", "html") else "9.8") in text
    assert "exploratory" in text or format == "csv"


def test_only_common_seeds_count(runs: list[Run]) -> None:
    few = [run for run in runs if run.config.method == "er" or run.config.seed != 142]
    row = comparison(few, "er", "er+gem", "joint").rows[0]
    assert row.seeds == (152, 162, 172, 182)
    assert row.p == pytest.approx(stats.ttest_rel(GEM[1:], ER[1:]).pvalue)
    two = [run for run in runs if run.config.seed in (142, 152)]
    row = comparison(two, "er", "er+gem").rows[0]
    assert (row.interval, row.p, row.result) == (None, None, "too few seeds")
    assert row.sentence.endswith("differs from er (so far +2.5 points).")


def test_any_measure_can_be_compared_also_of_the_trained_weights() -> None:
    plain = [measured_run("er", seed=seed, lower=seed % 7) for seed in (1, 2, 3)]
    other = [measured_run("er+ema", seed=seed, lower=1.0, raw=3.0) for seed in (1, 2, 3)]
    metrics = ["forgetting", "raw_gap_depth", "new_speed", "raw_min"]
    compared = comparison([*plain, *other], "er", "er+ema", metrics=metrics)
    assert [row.unit for row in compared.rows] == ["points", "points", "iterations", "points"]
    assert compared.rows[3].compared_mean == 52.0  # 55 - 3
    assert any("the evaluated weights are not the trained ones" in note for note in compared.notes)
    with pytest.raises(UserError, match="unknown metric 'forgeting': did you mean 'forgetting'"):
        comparison(plain, "er", "er+ema", metrics=["forgeting"])


def test_bounds_are_stated() -> None:
    thin = {"eval_schedule": "every:10"}
    compared = comparison(
        [*seeded("er", ER, **thin), *seeded("er+gem", GEM, **thin)], "er", "er+gem"
    )
    assert compared.cells[0][2:4] == ["≤ 80.6", "≤ 83.8"]
    assert compared.cells[1][2] == "91.0" or not compared.cells[1][2].startswith("≤")
    assert any("The difference of two bounds is not a bound." in note for note in compared.notes)
    assert "eval schedule every:10" in compared.place


def test_a_diverged_run_is_named() -> None:
    runs = [*seeded("er", ER), *seeded("er+gem", GEM[:4])]
    runs.append(scored_run("er+gem", 10, 10, seed=182, diverged=True))
    notes = comparison(runs, "er", "er+gem").notes
    assert "Runs that diverged count as they ended: 1 of er+gem." in notes


def test_a_measure_that_does_not_exist() -> None:
    runs = [scored_run(method, None, seed=seed) for method in ("er", "joint") for seed in (1, 2)]
    with pytest.raises(UserError, match="MIN is not defined for the runs of er and joint"):
        comparison(runs, "er", "joint")
    assert comparison(runs, "er", "joint", metrics=["avg"]).rows[0].effect == 0
    with pytest.raises(UserError, match="there are no runs to compare"):
        comparison([], "er", "joint")
