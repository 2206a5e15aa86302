"""Tables: every number here is worked by hand."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from twofold.report.progress import result_text
from twofold.report.tables import cell, mean_and_error, summary_tables


def summary(method: str, low: float | None, avg: float, **more: object) -> dict[str, object]:
    usual = {"benchmark": "rotated-mnist", "mode": "offline", "profile": "paper"}
    usual |= {"lr": 0.1, "batch_size": 128, "projected": 0.0, "diverged": False}
    return {**usual, "method": method, "min": low, "avg": avg, **more}


def shown(summaries: list[dict[str, object]], width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        for table in summary_tables(summaries):
            console.print(table)
    return captured.get()


def rows(summaries: list[dict[str, object]]) -> list[str]:
    """The lines of a table, without its title, its frame and more than single spaces."""
    lines = [" ".join(line.split()) for line in shown(summaries, width=120).splitlines()]
    return [line for line in lines if line and "━" not in line][1:]


def test_the_mean_and_its_standard_error() -> None:
    # 1, 2, 6: mean 3; deviations -2, -1, 3; variance 14 / 2 = 7; error sqrt(7 / 3).
    mean, error = mean_and_error([1, 2, 6])
    assert mean == 3
    assert error == pytest.approx(math.sqrt(7 / 3))
    # Two values: half their distance.
    assert mean_and_error([90, 94]) == (92, pytest.approx(2))
    assert mean_and_error([5, 5, 5]) == (5, 0)


def test_one_seed_has_no_error() -> None:
    assert mean_and_error([93.6]) == (93.6, None)
    assert cell([93.64]) == "93.6"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 6.0], "3.0 ± 1.5"),  # 1.5275
        ([90.0, 94.0], "92.0 ± 2.0"),
        ([80.06, 80.06], "80.1 ± 0.0"),
        ([100.0, 0.0], "50.0 ± 50.0"),
        ([None], "-"),  # a single task has no MIN
        ([None, None], "-"),
        ([], "-"),
    ],
)
def test_a_cell(values: list[float | None], text: str) -> None:
    assert cell(values) == text


def test_a_row_a_method_in_the_order_of_first_appearance() -> None:
    assert rows(
        [
            summary("er", 80, 90),
            summary("er+gem", 88, 93),
            summary("er", 84, 94),
            summary("er+gem", 90, 95),
        ]
    ) == [
        "method lr batch MIN AVG projected seeds",
        "er 0.1 128 82.0 ± 2.0 92.0 ± 2.0 0.0% 2",
        "er+gem 0.1 128 89.0 ± 1.0 94.0 ± 1.0 0.0% 2",
    ]


def test_what_was_trained_otherwise_is_no_other_seed() -> None:
    others = ({"lr": 0.01}, {"batch_size": 10})
    _, *body = rows([summary("er", 80, 90), *(summary("er", 60, 70, **o) for o in others)])
    assert body == [
        "er 0.1 128 80.0 90.0 0.0% 1",
        "er 0.01 128 60.0 70.0 0.0% 1",
        "er 0.1 10 60.0 70.0 0.0% 1",
    ]


def test_a_table_a_benchmark_mode_and_profile() -> None:
    others = ({"mode": "online"}, {"profile": "published"}, {"benchmark": "split-cifar100"})
    tables = summary_tables([summary("er", 80, 90), *(summary("er", 8, 9, **o) for o in others)])
    assert [table.title for table in tables] == [
        "rotated-mnist, offline, profile paper",
        "rotated-mnist, online, profile paper",
        "rotated-mnist, offline, profile published",
        "split-cifar100, offline, profile paper",
    ]
    assert summary_tables([]) == []


def test_projected_is_the_mean_share_of_iterations() -> None:
    _, row = rows([summary("gem", 80, 90, projected=0.25), summary("gem", 80, 90, projected=0.5)])
    assert row.endswith(" 37.5% 2")


def test_diverged_runs_are_marked() -> None:
    _, row = rows(
        [summary("er", 10, 9.8, diverged=True), summary("er", 80, 90), summary("er", 80, 90)]
    )
    assert row.endswith(" 3 (1 diverged)")


def test_a_single_task_has_no_min() -> None:
    _, row = rows([summary("er", None, 90)])
    assert row == "er 0.1 128 - 90.0 0.0% 1"


def test_a_long_method_is_told_from_another_in_a_narrow_terminal() -> None:
    """Eighty columns is also what a file or a pipe gets."""
    start = "er+gem(gamma=0.25,when=always,rule=added,references=cumulative"
    text = shown([summary(f"{start},ridge=0.{k})", 80, 90) for k in (1, 2)], width=80)
    assert "0.1)" in text
    assert "0.2)" in text


def test_the_line_about_a_finished_run() -> None:
    assert result_text(summary("er", 83.149, 93.55)) == "MIN 83.1  AVG 93.5"
    assert result_text(summary("er", None, 93.6)) == "MIN -  AVG 93.6"
    assert result_text(summary("er", 9.8, 9.8, diverged=True)) == "MIN 9.8  AVG 9.8  diverged"
