"""Tables for the terminal: every number here is worked by hand."""

from __future__ import annotations

import io

import pytest
from helpers.runs import scored_run
from rich.console import Console

from twofold.compare.groups import groups
from twofold.experiments.runs import Run
from twofold.report.terminal import run_table, summary_tables, whole_console
from twofold.text import mean_text


def shown(runs: list[Run], width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        for table in summary_tables(groups(runs)):
            console.print(table)
    return captured.get()


def rows(runs: list[Run]) -> list[str]:
    """The lines of a table, without its title, its frame and more than single spaces."""
    lines = [" ".join(line.split()) for line in shown(runs, width=120).splitlines()]
    return [line for line in lines if line and "━" not in line][1:]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 6.0], "3.0 ± 1.5"),  # 1.5275
        ([90.0, 90.0, 96.0], "92.0 ± 2.0"),
        ([80.06, 80.06, 80.06], "80.1 ± 0.0"),
        ([100.0, 0.0, 50.0], "50.0 ± 28.9"),  # 28.8675
        ([90.0, 94.0], "92.0"),  # two seeds have no error
        ([93.64], "93.6"),  # nor has one
        ([], "-"),  # a single task has no MIN
    ],
)
def test_a_mean_with_its_error(values: list[float], text: str) -> None:
    assert mean_text(values, "-") == text


def test_numbers_of_held_out_training_images_are_apart() -> None:
    titles = [
        str(table.title)
        for table in summary_tables(
            groups([scored_run("er", 80, 90), scored_run("er", 81, 91, validation=0.1)])
        )
    ]
    assert titles == [
        "rotated-mnist, offline, profile paper",
        "rotated-mnist, offline, profile paper, on held-out training images",
    ]


def test_a_row_per_method_in_the_order_of_first_appearance() -> None:
    # er: deviations -2, -2, 4; error sqrt(24 / 2 / 3). er+gem: -1, -1, 2; error sqrt(6 / 2 / 3).
    assert rows(
        [
            scored_run("er", 80, 90),
            scored_run("er+gem", 88, 93),
            scored_run("er", 80, 90, seed=152),
            scored_run("er+gem", 88, 93, seed=152),
            scored_run("er", 86, 96, seed=162),
            scored_run("er+gem", 91, 96, seed=162),
        ]
    ) == [
        "method lr batch MIN AVG projected seeds",
        "er 0.1 128 82.0 ± 2.0 92.0 ± 2.0 0.0% 3",
        "er+gem 0.1 128 89.0 ± 1.0 94.0 ± 1.0 0.0% 3",
    ]


def test_what_was_trained_otherwise_is_no_other_seed() -> None:
    others = ({"lr": 0.01}, {"batch_size": 10})
    _, *body = rows(
        [scored_run("er", 80, 90), *(scored_run("er", 60, 70, seed=152, **o) for o in others)]
    )
    assert body == [
        "er 0.1 128 80.0 90.0 0.0% 1",
        "er 0.01 128 60.0 70.0 0.0% 1",
        "er 0.1 10 60.0 70.0 0.0% 1",
    ]


def test_what_else_tells_rows_apart_has_a_column() -> None:
    assert rows(
        [scored_run("er", 80, 90), scored_run("er", 60, 70, momentum=0.5, memory_per_class=10)]
    ) == [
        "method lr batch momentum memory MIN AVG projected seeds",
        "er 0.1 128 0.9 per-class-task(100) 80.0 90.0 0.0% 1",
        "er 0.1 128 0.5 per-class-task(10) 60.0 70.0 0.0% 1",
    ]


def test_a_table_per_benchmark_mode_and_profile() -> None:
    others = ({"mode": "online"}, {"profile": "published"}, {"benchmark": "split-cifar100"})
    tables = summary_tables(groups([scored_run(), *(scored_run(**other) for other in others)]))
    assert [table.title for table in tables] == [
        "rotated-mnist, offline, profile paper",
        "rotated-mnist, online, profile paper",
        "rotated-mnist, offline, profile published",
        "split-cifar100, offline, profile paper",
    ]
    assert summary_tables([]) == []


def projecting(share: float, **options: object) -> Run:
    run = scored_run("gem", **options)
    run.summary["projected"] = share
    return run


def test_projected_is_the_mean_share_of_iterations() -> None:
    _, row = rows([projecting(0.25), projecting(0.5, seed=152)])
    assert row.endswith(" 37.5% 2")


def test_diverged_runs_are_marked() -> None:
    _, row = rows(
        [
            scored_run("er", 10, 9.8, diverged=True),
            *(scored_run("er", 80, 90, seed=s) for s in (152, 162)),
        ]
    )
    assert row.endswith(" 3 (1 diverged)")


def test_a_single_task_has_no_min() -> None:
    _, row = rows([scored_run("er", None, 90)])
    assert row == "er 0.1 128 - 90.0 0.0% 1"


def test_min_of_a_thinned_evaluation_is_an_upper_bound() -> None:
    _, row = rows([scored_run("er", 80, 90, eval_schedule="every:10")])
    assert row == "er 0.1 128 ≤ 80.0 90.0 0.0% 1"


def test_a_row_per_run() -> None:
    console = Console(file=io.StringIO(), width=150)
    with console.capture() as captured:
        console.print(run_table([scored_run("er", 80, 90), scored_run("gem", None, 70)]))
    lines = [" ".join(line.split()[1:]) for line in captured.get().splitlines()]
    assert "rotated-mnist offline er paper 0.1 128 142 80.0 90.0" in lines
    assert "rotated-mnist offline gem paper 0.1 128 142 - 70.0" in lines


def test_a_long_method_is_told_from_another_in_a_narrow_terminal() -> None:
    """Eighty columns is also what a file or a pipe gets."""
    start = "er+gem(gamma=0.25,when=always,rule=added,references=cumulative"
    text = shown([scored_run(f"{start},ridge=0.{k})", 80, 90) for k in (1, 2)], width=80)
    assert "0.1)" in text
    assert "0.2)" in text


def test_a_pipe_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    method = "er+gem(gamma=0.25)+clip(limit=0.5)+warmup(iterations=250)+ema(decay=0.998)"
    (table,) = summary_tables(groups([scored_run(method, 80, 90, memory_per_class=5)]))
    whole_console().print(table)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    (row,) = [line for line in lines if "gamma" in line]
    assert row.split() == [method, "0.1", "128", "80.0", "90.0", "0.0%", "1"]
