"""The table `trajectories`: measures worked by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.measures import measured_run

from twofold import Run
from twofold.compare.groups import groups
from twofold.evaluation.measures import MEASURES
from twofold.papers.hess2024.tables import TABLES
from twofold.report.tables import StudyTable, render, study_table
from twofold.report.tables.layouts import SIGNS

LAYOUT = TABLES["trajectories"]


def table(*runs: Run) -> StudyTable:
    return study_table("trajectories", groups(runs))


def shown(*runs: Run) -> dict[str, dict[str, str]]:
    """The only block as Markdown has it, by method and column."""
    lines = [line for line in render(table(*runs), "md").splitlines() if line.startswith("|")]
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(heads, row, strict=True)) for row in rows}


def test_a_row_has_what_was_worked_by_hand() -> None:
    # With three seeds, one lower by 3 everywhere: accuracies lower by 1 on average, with an error
    # of sqrt(6 / 2 / 3) = 1 (deviations 1, 1, -2); differences of accuracies are the same.
    same = [measured_run(seed=142), measured_run(seed=152)]
    row = shown(*same, measured_run(seed=162, lower=3.0))["ER"]
    assert row["MIN"] == "54.0 ± 1.0 (n=3)"
    assert row["AVG"] == "78.7 ± 1.0 (n=3)"
    assert row["residual"] == "29.0 ± 0.0 (n=3)"
    assert row["WC-ACC"] == "59.0 ± 1.0 (n=3)"
    assert row["gap depth"] == "23.0 ± 0.0 (n=3)"
    assert row["recovery"] == "3 ± 0 (n=3)"  # 10/3
    assert row["recovered"] == "66.7 ± 0.0 (n=3)"
    assert row["new-task accuracy"] == "75.0 ± 1.0 (n=3)"
    assert row["raw MIN"] == row["raw AVG"] == "–"


def test_every_number_is_the_mean_of_its_measure() -> None:
    runs = [
        measured_run(seed=142),
        measured_run(seed=152, lower=3.0),
        measured_run(seed=162, lower=4.0),
    ]
    for number in table(*runs).numbers():
        kind, _, key = number.metric.name.partition(".")
        values = [run.measures[key] for run in runs]
        if kind == "raw_measures" or None in values:
            assert number.value is None
        else:
            assert number.value is not None
            assert number.value[0] == pytest.approx(np.mean(values))


def test_the_trained_weights_where_others_are_evaluated() -> None:
    rows = shown(measured_run("er+ema(0.999)", raw=10.0), measured_run("er"))
    assert (rows["ER + ema(0.999)"]["MIN"], rows["ER + ema(0.999)"]["raw MIN"]) == (
        "55.0 (n=1)",
        "45.0 (n=1)",
    )
    assert rows["ER + ema(0.999)"]["raw AVG"] == "69.7 (n=1)"
    assert rows["ER"]["raw AVG"] == "–"


def test_rows_come_in_the_order_of_the_study_and_only_with_runs() -> None:
    methods = ("joint+gem", "er+warmup", "er+warmup+ema", "er")  # as the command line might have it
    assert list(shown(*map(measured_run, methods))) == [
        "ER",
        "ER + warmup(500)",
        "ER + warmup(500) + ema(0.999)",
        "Joint + GEM",
    ]


def test_each_column_is_explained_below() -> None:
    text = render(table(measured_run()), "md")
    for metric in LAYOUT.metrics:
        assert f"\n- {metric.label}: {metric.about}\n" in text
    keys = [metric.name.partition(".")[2] for metric in LAYOUT.metrics]
    for key in keys[:-2]:
        assert (
            f"- {MEASURES[key].title}: {MEASURES[key].explanation} In {MEASURES[key].unit}" in text
        )
    # Who does not learn looks bad in it.
    assert {"avg", "wc_acc", "new_speed", "new_accuracy"} <= set(keys)


def test_thinned_evaluation_has_a_sign() -> None:
    one = measured_run(eval_schedule="dense:100:10")
    row, text = shown(one)["ER"], render(table(one), "md")
    for key, measure in MEASURES.items():
        if measure.title in row and row[measure.title] != "–":
            sign = SIGNS[measure.thinned]
            assert row[measure.title].startswith(f"{sign} " if sign else "7"), key
    assert row["MIN"].startswith("≤ 55.0")
    assert row["residual"].startswith("≥ 29.0")
    assert row["AAA"].startswith("≈ 65.3")
    assert row["AVG"].startswith("79.7")
    for sign, words in (("≤", "an upper bound"), ("≥", "a lower bound"), ("≈", "approximate")):
        assert f"- {sign}: {words}, since the model was evaluated after each of" in text
    records = json.loads(render(table(one), "json"))["numbers"]
    for record in records:
        sign = SIGNS[MEASURES[record["metric"].removeprefix("raw_")].thinned]
        assert record["bound"] == (sign if record["mean"] is not None else "")


def test_fewer_images_are_reported_where_they_count() -> None:
    row = shown(measured_run(eval_size=250))["ER"]
    assert row["MIN"] == "55.0 (n=1) [a]"
    assert row["gap depth"] == "23.0 (n=1) [a]"
    for whole in ("AVG", "new-task accuracy"):
        assert "[a]" not in row[whole]


@pytest.mark.parametrize("format", ["latex", "html", "csv", "json"])
def test_the_other_formats_have_it_too(format: str) -> None:
    text = render(table(measured_run(), measured_run("er+warmup(500)+ema(0.999)", raw=1.0)), format)
    assert text.count("29.0") >= 2  # the residual of both
    assert "23.0" in text
