"""The paper's tables from runs. Numbers are worked by hand, or are the paper's own."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commandline import Command, one_line
from handmade import gathered, made, seeded
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import UserError
from twofold.experiments import studies
from twofold.experiments.config import Config, configure
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.cells import Cell, cells
from twofold.report.layouts import TABLES
from twofold.report.notes import notes
from twofold.report.paper import FILES, printed, slips
from twofold.report.selection import Setting
from twofold.report.studytables import Number, StudyTable, study_table
from twofold.report.text import latex_text, signed

pytest_plugins = ["commandline_fixtures"]


def number(table: StudyTable, method: str, metric: str = "min", **where: Any) -> Number:
    """The one number of a method and metric, at this benchmark, mode, lr or batch size."""
    (found,) = [
        n
        for n in table.numbers()
        if (n.method, n.metric.key) == (method, metric)
        and all(
            {**n.section.place._asdict(), **n.section.setting._asdict()}[k] == v
            for k, v in where.items()
        )
    ]
    return found


def rows(text: str) -> list[list[str]]:
    """The cells of Markdown tables, line by line, rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [line for line in split if not set("".join(line)) <= set("-:")]


# The paper's own grid as a store: two seeds a cell, mean - sem and mean + sem, so that the mean
# and the standard error (half the distance) are those that the paper prints.


def printed_rows() -> Iterator[dict[str, str]]:
    with (FILES / "appendix_tables.csv").open(newline="") as file:
        yield from csv.DictReader(file)


@pytest.fixture(scope="module")
def papers() -> list[Cell]:
    by_cell: dict[tuple[str, ...], dict[str, tuple[float, float]]] = {}
    for row in printed_rows():
        if row["usable"] == "yes":
            key = tuple(row[name] for name in ("benchmark", "mode", "batch_size", "lr", "method"))
            by_cell.setdefault(key, {})[row["metric"]] = float(row["mean"]), float(row["sem"])
    runs = []
    for (benchmark, mode, batch_size, lr, method), values in by_cell.items():
        for seed, sign in ((142, -1), (152, 1)):
            low, avg = (mean + sign * sem for mean, sem in (values["MIN"], values["AVG"]))
            setting = {"mode": mode, "lr": float(lr), "batch_size": int(batch_size)}
            runs.append(made(method, low, avg, benchmark=benchmark, seed=seed, **setting))
    return cells(runs)


PLACES = [
    (benchmark, mode)
    for benchmark in ("rotated-mnist", "domain-cifar100", "split-cifar100", "split-mini-imagenet")
    for mode in ("offline", "online")
]

# What is bold in the printed main table: a letter a method in the order of the columns, x for bold.
PRINTED_BOLD = {
    ("rotated-mnist", "offline", "min"): ".x. xxx",
    ("rotated-mnist", "offline", "avg"): ".x. .x.",
    ("rotated-mnist", "online", "min"): ".x. .x.",
    ("rotated-mnist", "online", "avg"): ".x. xxx",
    ("domain-cifar100", "offline", "min"): "x.x xxx",
    ("domain-cifar100", "offline", "avg"): "x.x xxx",
    ("domain-cifar100", "online", "min"): "x.x xxx",
    ("domain-cifar100", "online", "avg"): "x.x xxx",
    ("split-cifar100", "offline", "min"): "x.x ..x",
    ("split-cifar100", "offline", "avg"): "x.x x.x",
    ("split-cifar100", "online", "min"): "x.x xxx",
    ("split-cifar100", "online", "avg"): "x.x xxx",  # 41.1 +- 0.4 beside 41.4 +- 0.2: rounding
    ("split-mini-imagenet", "offline", "min"): "x.x x.x",
    ("split-mini-imagenet", "offline", "avg"): "x.x x.x",
    ("split-mini-imagenet", "online", "min"): "x.x x.x",
    ("split-mini-imagenet", "online", "avg"): "x.x x.x",  # 13.9 +- 0.5 beside 14.6 +- 0.3
}
UNLIKE_PRINTED = {
    ("split-cifar100", "online", "joint+gem", "avg"),
    ("split-mini-imagenet", "online", "er", "avg"),
}


def test_from_the_papers_grid_the_papers_settings_are_chosen(papers: list[Cell]) -> None:
    main, sota = study_table("main", papers), study_table("sota", papers)
    chosen = {tuple(place): choice.setting for place, choice in main.choices.items()}
    offline, online = Setting(0.1, 128), Setting(0.01, 10)
    assert chosen == {
        **{place: offline if place[1] == "offline" else online for place in PLACES},
        ("split-mini-imagenet", "online"): Setting(0.01, 64),
    }
    assert {place.benchmark: choice.setting.lr for place, choice in sota.choices.items()} == {
        "rotated-mnist": 0.01,
        "domain-cifar100": 0.01,
        "split-cifar100": 0.1,
        "split-mini-imagenet": 0.01,
    }
    assert all("plain er and joint among" in choice.why for choice in main.choices.values())


def test_the_bold_rule_on_the_papers_own_numbers(papers: list[Cell]) -> None:
    unlike = set()
    for n in study_table("main", papers).numbers():
        place = (*n.section.place, n.metric.name)
        columns = [column.method for group in TABLES["main"].groups for column in group]
        bold = PRINTED_BOLD[place].replace(" ", "")[columns.index(n.method)] == "x"
        if n.bold != bold:
            unlike.add((*n.section.place, n.method, n.metric.name))
    assert unlike == UNLIKE_PRINTED


def test_the_papers_numbers_are_no_different_from_themselves(papers: list[Cell]) -> None:
    for name in ("main", "sota", "appendix"):
        numbers = list(study_table(name, papers).numbers())
        assert all(n.value is not None and n.printed is not None for n in numbers)
        assert all(n.difference == pytest.approx(0, abs=1e-9) for n in numbers)
        for n in numbers:
            assert n.value == (pytest.approx(n.printed[0]), pytest.approx(n.printed[1], abs=1e-9))
    # 39 usable settings of 11 or 13 methods: 1,152 cells less the 78 of the slip.
    assert len(numbers) == 1152 - 78


def test_the_grey_cells_of_the_appendix(papers: list[Cell]) -> None:
    used = {
        (*n.section.place, n.method, n.section.setting)
        for n in study_table("appendix", papers).numbers()
        if n.used
    }
    shown = {
        (*n.section.place, n.method, n.section.setting)
        for name in ("main", "sota")
        for n in study_table(name, papers).numbers()
    }
    assert used == shown
    # Eight places of six methods; two with DER alone, two with DER and BiC.
    assert len(used) == 8 * 6 + 2 * 2 + 2 * 4


def test_the_layout_of_the_main_table(papers: list[Cell]) -> None:
    text = study_table("main", papers).render("md")
    head, *body = rows(text)
    er, joint = ["ER", "ER + GEM", "ER + A-GEM"], ["Joint", "Joint + GEM", "Joint + A-GEM"]
    assert head == ["benchmark", "mode", "LR", "BS", "metric", *er, *joint]
    assert body[0] == [
        *("Rotated MNIST", "offline", "0.1", "128", "MIN"),
        *("83.1 ± 0.5 (n=2)", "**84.1 ± 0.4** (n=2)", "82.5 ± 0.7 (n=2)"),
        *("**86.7 ± 0.8** (n=2)", "**87.5 ± 0.9** (n=2)", "**86.6 ± 0.6** (n=2)"),
    ]
    assert body[1][:6] == ["", "", "", "", "paper", "83.1 ± 0.5"]
    assert body[2][:6] == ["", "", "", "", "difference", "0.0 (0.0 se)"]
    assert [line[:2] for line in body if line[1]] == [
        ["Rotated MNIST", "offline"],
        ["", "online"],
        ["Domain CIFAR-100", "offline"],
        ["", "online"],
        ["Split CIFAR-100", "offline"],
        ["", "online"],
        ["Split Mini-ImageNet", "offline"],
        ["", "online"],
    ]


def test_the_layout_of_the_second_table(papers: list[Cell]) -> None:
    head, *body = rows(study_table("sota", papers).render("md"))
    assert head[5:] == ["DER", "DER + A-GEM", "BiC", "BiC + A-GEM"]
    domain = [line for line in body if line[4] == "MIN"][:2]
    assert [line[7:] for line in domain] == [["–", "–"], ["–", "–"]]  # no BiC there
    assert "**" not in study_table("sota", papers).render("md").split("\n\n", 1)[1]


def test_the_layout_of_the_appendix(papers: list[Cell]) -> None:
    table = study_table("appendix", papers)
    assert [block.title for block in table.blocks] == [
        f"{title}, {mode}"
        for title in ("Rotated MNIST", "Domain CIFAR-100", "Split CIFAR-100", "Split Mini-ImageNet")
        for mode in ("offline", "online")
    ]
    assert table.blocks[0].columns == (
        *("Finetune", "GEM", "A-GEM", "ER", "ER + GEM", "ER + A-GEM", "DER", "DER + A-GEM"),
        *("Joint", "Joint + GEM", "Joint + A-GEM"),
    )
    assert table.blocks[4].columns[6:10] == ("DER", "DER + A-GEM", "BiC", "BiC + A-GEM")
    assert table.blocks[4].groups == (3, 3, 2, 2, 3)
    heads = [row.heads for row in table.blocks[1].rows]
    assert heads[::2] == [
        (batch_size, lr, "MIN")
        for batch_size in ("10", "64", "128")
        for lr in ("0.1", "0.01", "0.001")
    ]


@pytest.mark.parametrize("name", [name for name, layout in TABLES.items() if layout.groups])
def test_every_method_of_a_study_has_its_column(name: str) -> None:
    layout = TABLES[name]
    there = {cell.options["method"] for cell in studies.load(layout.study).cells}
    assert there == {column.method for group in layout.groups for column in group}


# The paper's numbers


def test_all_of_the_papers_cells_are_shipped() -> None:
    assert len(list(printed_rows())) == 1152
    assert printed("rotated-mnist", "offline", "er", "min", 0.1, 128) == (83.1, 0.5)
    assert printed("split-cifar100", "online", "bic+agem", "avg", 0.01, 64) == (15.1, 0.4)
    gamma = "er+gem(when=always,gamma=0.050)"
    assert printed("domain-cifar100", "offline", gamma, "avg", 0.1, 128) == (47.2, 0.7)
    assert printed("split-cifar100", "online", "er", "seconds.training", 0.01, 10) == (59.24, 0.66)
    assert printed("rotated-mnist", "offline", "er", "min", 0.2, 128) is None
    assert printed("rotated-mnist", "offline", "er+gem", "seconds.training", 0.1, 128) is None


def test_the_slip_is_marked_and_is_one() -> None:
    """The marked block is the one of batch size 128, with three columns moved."""
    assert slips() == {("split-mini-imagenet", "online", 10)}
    moved = {"bic": "joint", "bic+agem": "bic", "joint": "bic+agem"}
    block: dict[str, dict[tuple[str, str, str], str]] = {"10": {}, "128": {}}
    for row in printed_rows():
        assert (row["usable"] == "no") == (
            (row["benchmark"], row["mode"], row["batch_size"])
            == ("split-mini-imagenet", "online", "10")
        )
        if (
            row["benchmark"] == "split-mini-imagenet"
            and row["batch_size"] in block
            and row["mode"] == "online"
        ):
            block[row["batch_size"]][row["method"], row["lr"], row["metric"]] = row["mean"]
    assert len(block["10"]) == 78
    for (method, lr, metric), mean in block["10"].items():
        assert block["128"][moved.get(method, method), lr, metric] == mean


def test_nothing_is_compared_with_the_slip() -> None:
    setting = {"benchmark": "split-mini-imagenet", "mode": "online", "batch_size": 10}
    table = study_table("main", gathered(seeded("er", [1, 3], **setting)))
    assert number(table, "er").printed is None
    assert number(table, "er").difference is None
    assert any("a slip" in note for note in notes(table))
    assert "paper" not in [line[4] for line in rows(table.render("md"))]
    there = study_table("main", gathered(seeded("er", [1, 3], **{**setting, "batch_size": 64})))
    assert number(there, "er").printed == (3.3, 0.2)
    assert not any("a slip" in note for note in notes(there))


# Numbers


def test_a_number_by_hand() -> None:
    # 82, 84: mean 83, standard error 1. The paper has 83.1 +- 0.5: 0.1 below, and both errors
    # together are sqrt(1 + 0.25) = 1.118, so 0.0894 of them.
    table = study_table("main", gathered(seeded("er", [82, 84], [91, 92])))
    n = number(table, "er")
    assert n.value == (83, pytest.approx(1))
    assert n.printed == (83.1, 0.5)
    assert n.difference == pytest.approx(-0.1)
    assert n.errors_apart == pytest.approx(0.1 / math.sqrt(1.25))
    assert n.seeds == [142, 152]
    assert n.command == "twofold run rotated-mnist er --mode offline --seeds 2 --profile paper"
    _, low, paper, difference, *_ = rows(table.render("md"))
    assert [low[5], paper[5], difference[5]] == ["83.0 ± 1.0 (n=2)", "83.1 ± 0.5", "−0.1 (0.1 se)"]


def test_all_seeds_of_the_study_need_no_remark() -> None:
    table = study_table("main", gathered(seeded("er", [80, 81, 82, 83, 84])))
    # Mean 82, deviation sqrt(10 / 4), error sqrt(10 / 4 / 5) = 0.7071.
    assert rows(table.render("md"))[1][5] == "82.0 ± 0.7"


def test_one_seed_has_no_error() -> None:
    table = study_table("main", gathered(seeded("er", [83.1])))
    assert rows(table.render("md"))[1][5] == "83.1 (n=1)"
    assert number(table, "er").errors_apart is None


def test_where_there_is_nothing_there_is_a_dash_beside_the_papers() -> None:
    _, low, paper, difference, *_ = rows(study_table("main", gathered(seeded("er", [80]))).render())
    assert low[6:] == ["–"] * 5
    assert paper[6] == "84.1 ± 0.4"
    assert difference[6:] == [""] * 5


def test_a_single_task_has_no_min() -> None:
    table = study_table("main", cells([made(low=None, tasks=1)]))
    assert number(table, "er").value is None
    assert number(table, "er", "avg").value == (90, None)


def test_diverged_runs_are_marked() -> None:
    runs = [*seeded("er", [80, 81, 82, 83]), made(low=9.8, avg=9.8, seed=182, diverged=True)]
    assert "(1 diverged)" in rows(study_table("main", cells(runs)).render())[1][5]
    assert "(n=1, 1 diverged)" in study_table("main", cells(runs[4:])).render()


def test_an_error_that_the_paper_rounds_to_nothing_is_no_unit() -> None:
    table = study_table("main", gathered(seeded("joint", [86, 87], [97, 98])))
    assert number(table, "joint", "avg").printed == (97.5, 0.0)
    assert number(table, "joint", "avg").difference == 0
    assert number(table, "joint", "avg").errors_apart is None


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "+0.2"), (-2.03, "−2.0"), (0.04, "0.0"), (-0.04, "0.0"), (0, "0.0")]
)
def test_signs(value: float, text: str) -> None:
    assert signed(value) == text


# Bold


def bold(*runs: list[Run]) -> list[str]:
    table = study_table("main", gathered(*runs))
    return [n.method for n in table.numbers() if n.bold and n.metric.name == "min"]


def test_the_highest_of_each_group_is_bold() -> None:
    low, high = [80.0, 81.0], [90.0, 91.0]
    methods = ("er", low), ("er+gem", high), ("joint", low), ("joint+agem", high)
    assert bold(*(seeded(*each) for each in methods)) == ["er+gem", "joint+agem"]


def test_so_are_those_within_its_standard_error() -> None:
    # er+gem: 90 +- 1. 89 lies within (just), 88.9 does not, whatever its own error.
    best = seeded("er+gem", [89, 91])
    assert bold(best, seeded("er", [88, 90]), seeded("er+agem", [80, 97.8])) == ["er", "er+gem"]


def test_a_method_alone_in_its_group_is_compared_with_nothing() -> None:
    assert bold(seeded("er", [80, 81]), seeded("joint+gem", [80, 81])) == []


def test_runs_that_were_not_judged_alike_are_not_ranked() -> None:
    thinned = seeded("er+gem", [90, 91], eval_every=10)
    table = study_table("main", gathered(seeded("er", [80, 81]), thinned))
    assert not any(n.bold for n in table.numbers() if n.metric.name == "min")
    # AVG does not depend on the schedule.
    assert [n.method for n in table.numbers() if n.bold] == ["er+gem"]


# Which runs belong to a table


def as_published() -> Config:
    """Plain ER as the paper's text has it, said under the other profile."""
    same = {"memory_grouping": "class-task", "whitening": "train"}
    return configure("rotated-mnist", "er", profile="published", seed=152, **same)


def test_runs_are_known_by_what_they_are() -> None:
    assert as_published().identity() == made(seed=152).config.identity()
    same = Run(as_published(), {**made(seed=152).summary, "min": 84.0}, {})
    paper = study_table("main", cells([made(low=82), same]))
    assert number(paper, "er").seeds == [142, 152]
    assert number(paper, "er").value == (83, pytest.approx(1))
    published = study_table("main", cells([made(low=82), same]), "published")
    assert published.blocks == ()


def test_each_profile_has_its_own_runs() -> None:
    found = gathered(seeded("er", [80, 82]), seeded("er", [70, 72], profile="published"))
    assert number(study_table("main", found), "er").value == (81, pytest.approx(1))
    table = study_table("main", found, "published")
    assert number(table, "er").value == (71, pytest.approx(1))
    assert number(table, "er").command.endswith("--profile published")


@pytest.mark.parametrize(
    "other",
    [
        {"memory_per_class": 10},
        {"memory_grouping": "class"},
        {"whitening": "published"},
        {"momentum": 0.5},
        {"reset_momentum": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_runs_do_not_belong(other: dict[str, Any]) -> None:
    assert study_table("main", cells([made(**other)])).blocks == ()
    both = study_table("main", cells([made(low=80), made(low=10, seed=152, **other)]))
    assert number(both, "er").seeds == [142]


def test_gem_with_another_gamma_is_no_column() -> None:
    assert study_table("main", cells([made("er+gem(gamma=0.1)")])).blocks == ()


# Runs that are smaller than the paper's


def test_shortened_runs_are_never_mixed_with_full_ones() -> None:
    short = [made(low=10, seed=seed, iterations=20) for seed in (142, 152, 162)]
    table = study_table("main", cells([made(low=80), *short]))
    assert number(table, "er").value == (80, None)
    assert number(table, "er").seeds == [142]


def test_shortened_runs_are_shown_if_there_are_no_others_and_compared_with_nothing() -> None:
    table = study_table("main", gathered(seeded("er", [10, 12], iterations=20, tasks=2)))
    n = number(table, "er")
    assert n.value == (11, pytest.approx(1))
    assert n.difference is None
    assert number(table, "er", "avg").difference is None
    text = table.render("md")
    assert "11.0 ± 1.0 (n=2) [a]" in text
    assert "[a] not the paper's runs: at most 20 iterations a task, the first 2 tasks only." in text
    assert "difference" not in [line[4] for line in rows(text)]


def test_of_shortened_runs_the_longest_are_shown() -> None:
    runs = [*seeded("er", [10, 12], iterations=20), made(low=50, iterations=200)]
    assert number(study_table("main", cells(runs)), "er").value == (50, None)


def test_a_limit_that_limits_nothing_shortens_nothing() -> None:
    table = study_table("main", gathered(seeded("er", [82, 84], iterations=2000, tasks=3)))
    assert number(table, "er").remarks == ()
    assert number(table, "er").difference == pytest.approx(-0.1)


def test_min_of_a_thinned_evaluation_is_an_upper_bound() -> None:
    table = study_table("main", gathered(seeded("er", [82, 84], [91, 92], eval_every=10)))
    low, avg = number(table, "er"), number(table, "er", "avg")
    assert low.bound
    assert not avg.bound
    assert low.errors_apart is None
    assert avg.errors_apart is not None
    text = table.render("md")
    assert rows(text)[1][5] == "≤ 83.0 ± 1.0 (n=2)"
    assert rows(text)[3][5] == "≤ −0.1"
    assert "judged every 10 iterations" in text


def test_complete_evaluation_is_preferred_to_more_seeds() -> None:
    thinned = seeded("er", [82, 84, 86], eval_every=10)
    assert number(study_table("main", cells([*thinned, made(low=80)])), "er").value == (80, None)


def test_min_on_fewer_images_is_another_quantity() -> None:
    table = study_table("main", gathered(seeded("er", [82, 84], [91, 92], eval_size=100)))
    assert number(table, "er").difference is None
    assert number(table, "er").remarks == ("judged on 100 images a task",)
    assert number(table, "er", "avg").difference == pytest.approx(-0.4)
    assert number(table, "er", "avg").remarks == ()


@pytest.mark.parametrize("different", [0, 3])
def test_bf16_counts_as_fp32_unless_an_audit_found_a_difference(different: int) -> None:
    runs = seeded("er", [82, 84], [91, 92], eval_precision="bf16")
    runs[1].summary["audit"] = {"images": 2000, "differences": different}
    table = study_table("main", gathered(runs))
    said = ("judged in bf16 (3 of 2,000 audited predictions are others in fp32)",)
    assert number(table, "er").remarks == (said if different else ())
    assert number(table, "er").difference == pytest.approx(83 - 83.1)
    assert number(table, "er", "avg").remarks == ()


# The choice of learning rate and batch size


def chosen(*runs: list[Run], name: str = "main") -> tuple[Setting, str]:
    ((setting, why),) = study_table(name, gathered(*runs)).choices.values()
    return setting, why


def test_the_setting_is_one_for_er_and_joint() -> None:
    # Means of both: lr 0.1: (90 + 97) / 2 = 93.5; lr 0.01: (93 + 95) / 2 = 94, the highest.
    setting, why = chosen(
        seeded("er", [80], [90]),
        seeded("joint", [80], [97]),
        seeded("er", [80], [93], lr=0.01),
        seeded("joint", [80], [95], lr=0.01),
    )
    assert setting == Setting(0.01, 128)
    assert why == (
        "highest final accuracy of plain er and joint among 2 settings; joint alone ends highest "
        "with LR 0.1, BS 128 (the paper's: LR 0.1, BS 128)"
    )


def test_methods_with_a_routine_have_no_say() -> None:
    runs = (seeded("er", [80], [90]), seeded("er", [80], [89], lr=0.01))
    assert chosen(*runs, seeded("er+gem", [80], [99], lr=0.01))[0] == Setting(0.1, 128)


def test_what_is_there_for_both_goes_before_what_is_not() -> None:
    runs = (seeded("er", [80], [90]), seeded("joint", [80], [91]))
    assert chosen(*runs, seeded("er", [80], [99], lr=0.01))[0] == Setting(0.1, 128)


def test_the_only_setting_is_taken_and_named() -> None:
    setting, why = chosen(seeded("er", [80], lr=0.05))
    assert setting == Setting(0.05, 128)
    assert why == "the only ones with runs (the paper's: LR 0.1, BS 128)"
    table = study_table("main", gathered(seeded("er", [80], lr=0.05)))
    assert rows(table.render())[1][2:4] == ["0.05", "128"]
    assert number(table, "er").printed is None  # the paper has none for it


def test_shortened_runs_do_not_choose() -> None:
    short = seeded("er", [99], [99], lr=0.01, iterations=20)
    full = (seeded("er", [80], [90]), seeded("er", [80], [85], lr=0.001))
    assert chosen(*full, short)[0] == Setting(0.1, 128)


def test_without_a_plain_method_the_papers_setting_is_shown() -> None:
    runs = [seeded("er+gem", [80], [90]), seeded("er+gem", [80, 81], [99, 99], lr=0.01)]
    assert chosen(*runs) == (Setting(0.1, 128), "as in the paper")
    others = [seeded("er+gem", [80], lr=0.2), seeded("er+gem", [80, 81], lr=0.3)]
    assert chosen(*others)[0] == Setting(0.3, 128)


def test_the_second_table_goes_by_der_and_bic() -> None:
    where = {"benchmark": "split-cifar100"}
    runs = [
        seeded("der", [1], [20], **where),
        seeded("bic", [1], [30], **where),
        seeded("der", [1], [22], lr=0.01, **where),
        seeded("bic", [1], [29], lr=0.01, **where),  # 25.5 beside 25
        seeded("er", [1], [99], lr=0.001, **where),
    ]
    assert chosen(*runs, name="sota")[0] == Setting(0.01, 128)


def test_settings_beyond_the_papers_are_in_the_appendix() -> None:
    runs = (seeded("er", [80]), seeded("er", [81], lr=0.05), seeded("er", [82], batch_size=64))
    (block,) = study_table("appendix", gathered(*runs)).blocks
    assert [row.heads[:2] for row in block.rows[::2]] == [
        ("64", "0.1"),
        ("128", "0.1"),
        ("128", "0.05"),
    ]


# The gamma study and the time of training


def test_the_gamma_study() -> None:
    gammas = {"0": 84.4, "0.05": 85.6, "0.1": 86.8, "0.5": 89.1, "0.8": 89.5, "1": 90.0}
    runs = [
        seeded(f"er+gem(gamma={gamma},when=always)", [low - 0.2, low + 0.2])
        for gamma, low in gammas.items()
    ]
    table = study_table("gamma", gathered(*runs, seeded("er", [82.6, 83.6])))
    assert [block.title for block in table.blocks] == ["Rotated MNIST, offline, LR 0.1, BS 128"]
    head, low, paper, difference, *_ = rows(table.render("md"))
    assert head[1:] == [*(f"γ = {gamma}" for gamma in gammas), "ER"]
    assert low[6:] == ["**90.0 ± 0.2** (n=2)", "83.1 ± 0.5 (n=2)"]
    assert paper[1:] == [
        *("84.4 ± 0.7", "85.6 ± 0.5", "86.8 ± 0.5", "89.1 ± 0.2", "89.5 ± 0.4", "90.0 ± 0.2"),
        "83.1 ± 0.5",
    ]
    assert {text.split()[0] for text in difference[1:]} == {"0.0"}
    assert any("No runs yet: Domain CIFAR-100 (offline)" in note for note in notes(table))


TIMED = {"benchmark": "split-cifar100", "mode": "online", "eval_every": 1_000_000}


def timed(method: str, *seconds: float, **options: Any) -> list[Run]:
    wanted = {**TIMED, **options}
    pairs = zip((142, 152, 162, 172, 182), seconds, strict=False)
    return [made(method, seed=seed, seconds=each, **wanted) for seed, each in pairs]


def test_the_time_of_training() -> None:
    # er: 10, 12: 11 +- 1. er+gem: 22, 44: 33 +- 11, three times as long; the error of the ratio
    # is 3 sqrt((11 / 33)^2 + (1 / 11)^2) = 1.0366.
    table = study_table("timing", gathered(timed("er", 10, 12), timed("er+gem", 22, 44)))
    seconds = number(table, "er+gem", "seconds.training")
    times = number(table, "er+gem", "seconds.training/er")
    assert seconds.value == (33, pytest.approx(11))
    assert seconds.printed == (252.25, 1.21)
    assert seconds.difference is None  # another machine
    assert times.value == (pytest.approx(3), pytest.approx(1.0366, abs=1e-4))
    assert times.printed[0] == pytest.approx(252.25 / 59.24)
    assert times.difference == pytest.approx(3 - 252.25 / 59.24)
    assert number(table, "er", "seconds.training/er").value == (1, None)
    assert (
        times.command == f"{seconds.command} && {number(table, 'er', 'seconds.training').command}"
    )
    head, *body = rows(table.render("md"))
    assert head == ["method", "Time [s]", "Times ER"]
    assert [line for line in body if line[0].startswith(("ER", "paper"))][:4] == [
        ["ER", "11.00 ± 1.00 (n=2)", "1.00 (n=2)"],
        ["paper", "59.24 ± 0.66", "1.00"],
        ["ER + A-GEM", "–", "–"],
        ["paper", "61.52 ± 0.60", "1.04 ± 0.02"],
    ]


def test_time_is_taken_from_runs_that_were_made_for_it() -> None:
    judged = timed("er", 50, 50, 50, 50, eval_every=1)
    table = study_table("timing", gathered(judged, timed("er", 10, 12)))
    assert number(table, "er", "seconds.training").value == (11, pytest.approx(1))
    alone = study_table("timing", gathered(judged))
    assert number(alone, "er", "seconds.training").value == (50, pytest.approx(0))


def test_times_without_er_have_no_ratio() -> None:
    table = study_table("timing", gathered(timed("er+gem", 22, 44)))
    assert number(table, "er+gem", "seconds.training/er").value is None


def test_times_of_different_machines_are_said_to_be() -> None:
    table = study_table("timing", gathered(timed("er", 1), timed("er+gem", 2, processor="another")))
    assert any("different machines: a processor, another" in note for note in notes(table))
    same = study_table("timing", gathered(timed("er", 1), timed("er+gem", 2)))
    assert not any("different machines" in note for note in notes(same))


# Formats


@pytest.fixture(scope="module")
def small() -> StudyTable:
    runs = [
        seeded("er", [82, 84], [91, 92]),
        seeded("er+gem", [80, 90], [93, 94]),
        seeded("joint", [86, 87], eval_every=10),
    ]
    return study_table("main", gathered(*runs))


def test_json_has_every_number_in_full(small: StudyTable) -> None:
    whole = json.loads(small.render("json"))
    assert (whole["table"], whole["profile"]) == ("main", "paper")
    assert whole["notes"] == notes(small)
    first = whole["numbers"][0]
    assert first == {
        "table": "main",
        "profile": "paper",
        "benchmark": "rotated-mnist",
        "mode": "offline",
        "lr": 0.1,
        "batch_size": 128,
        "method": "er",
        "metric": "min",
        "mean": 83.0,
        "sem": pytest.approx(1.0),
        "seeds": [142, 152],
        "diverged": 0,
        "bound": "",
        "reduced": "",
        "bold": True,  # er+gem has 85 +- 5
        "used": False,
        "paper_mean": 83.1,
        "paper_sem": 0.5,
        "difference": pytest.approx(-0.1),
        "errors_apart": pytest.approx(0.1 / math.sqrt(1.25)),
        "command": "twofold run rotated-mnist er --mode offline --seeds 2 --profile paper",
    }
    joint = next(n for n in whole["numbers"] if n["method"] == "joint")
    assert joint["bound"] == "≤"
    assert "every 10 iterations" in joint["reduced"]
    assert [n["mean"] for n in whole["numbers"] if n["method"] == "er+agem"] == [None, None]


def test_csv_says_the_same(small: StudyTable) -> None:
    read = list(csv.DictReader(io.StringIO(small.render("csv"))))
    whole = json.loads(small.render("json"))["numbers"]
    assert len(read) == len(whole) == 12
    for line, one in zip(read, whole, strict=True):
        assert line["method"] == one["method"]
        assert line["seeds"] == " ".join(map(str, one["seeds"]))
        for name in ("mean", "sem", "paper_mean", "difference"):
            assert (float(line[name]) if line[name] else None) == one[name]


class Cells(HTMLParser):
    """All tags in order, and what stands in each cell; complains where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th", "caption", "li"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th", "caption", "li"} & set(self._open):
            self.texts[-1] += data


def test_html_leads_every_number_to_its_command(small: StudyTable) -> None:
    page = Cells(small.render("html"))
    cells = [
        (attrs, text)
        for (tag, attrs), text in zip(_texted(page), page.texts, strict=True)
        if tag == "td"
    ]
    assert len(cells) == 12
    for (attrs, text), n in zip(cells, small.numbers(), strict=True):
        assert attrs.get("data-command") == n.command
        assert attrs.get("title") == n.command
        assert text.startswith("–") == (n.command is None)
    assert cells[0][1] == "83.0 ± 1.0 (n=2) paper 83.1 ± 0.5 −0.1 (0.1 se)"
    heads = [attrs for tag, attrs in page.tags if tag == "th"]
    assert all(attrs["scope"] in ("col", "row", "rowgroup") for attrs in heads)
    assert page.texts[0].startswith("ER and full replay")
    assert small.render("html").isascii()


def test_html_marks_what_is_bold_and_what_other_tables_show(papers: list[Cell]) -> None:
    main, appendix = (study_table(name, papers).render("html") for name in ("main", "appendix"))
    bold = sum(row.count("x") for row in PRINTED_BOLD.values()) - len(UNLIKE_PRINTED)
    assert main.count("<strong>") == main.count('bold"') == bold
    assert main.count("<em>") == 0
    assert appendix.count("<em>") == appendix.count('used"') == 2 * (8 * 6 + 2 * 2 + 2 * 4)


def _texted(page: Cells) -> list[tuple[str, dict[str, str | None]]]:
    return [(tag, attrs) for tag, attrs in page.tags if tag in ("td", "th", "caption", "li")]


def test_html_rows_are_as_wide_as_their_head(papers: list[Cell]) -> None:
    """With cells that span rows counted in."""
    for name in ("main", "appendix"):
        for text in study_table(name, papers).render("html").split("</table>")[:-1]:
            head, *body = re.findall("<tr>(.*?)</tr>", text)
            width = head.count("<th")
            spans: list[int] = []
            for row in body:
                begun = [
                    int(span or 1)
                    for span in re.findall(r'<th scope="row\w*"(?: rowspan="(\d+)")?>', row)
                ]
                spans = [span - 1 for span in spans if span > 1] + begun
                assert len(spans) + row.count("<td") == width


def test_a_hostile_name_stays_text() -> None:
    """Whoever gives away a store can write any name into it."""
    run = made()
    hostile = "er'\"><script>alert(1)</script>"
    command = f"twofold run rotated-mnist {shlex.quote(hostile)} --seed 142"
    config = Config(**{**vars(run.config), "method": hostile})
    table = study_table("main", cells([Run(config, {**run.summary, "command": command}, {})]))
    assert number(table, "er").value == (80, None)  # by its components, it is plain ER
    page = Cells(table.render("html"))
    assert "script" not in {tag for tag, _ in page.tags}
    told = [attrs["data-command"] for _, attrs in page.tags if "data-command" in attrs]
    assert told == [command.replace("--seed 142", "--seeds 1")] * 2


def test_latex_escapes_what_it_must() -> None:
    assert latex_text("a_b & 50% of #1 {x} $y ~ ^ \\z <w>") == (
        r"a\_b \& 50\% of \#1 \{x\} \$y \textasciitilde{} \textasciicircum{} \textbackslash{}z "
        r"\textless{}w\textgreater{}"
    )
    assert latex_text("run `er_x` at 1 ± 2 ≤ 3") == r"run \texttt{er\_x} at 1 $\pm$ 2 $\leq$ 3"


@given(st.text(st.characters(codec="ascii", exclude_characters="`")))
def test_latex_shows_the_text_that_it_is_given(text: str) -> None:
    """Undone letter by letter, it is the text again, and nothing special is left bare."""
    shown = latex_text(text)
    macros = {r"\textbackslash{}": "\\", r"\textless{}": "<", r"\textgreater{}": ">"}
    macros |= {r"\textasciitilde{}": "~", r"\textasciicircum{}": "^"}
    macros |= {f"\\{letter}": letter for letter in "{}$&#%_"}
    bare = "(?P<bare>[\\\\{}$&#%_~^<>])"
    pattern = "|".join([*map(re.escape, macros), bare])

    def undo(match: re.Match[str]) -> str:
        assert match["bare"] is None, shown
        return macros[match[0]]

    assert re.sub(pattern, undo, shown) == text


def test_latex_rows_are_as_wide_as_their_head(papers: list[Cell]) -> None:
    for name in ("main", "sota", "appendix"):
        text = study_table(name, papers).render("latex")
        assert text.isascii()
        for part in text.split(r"\begin{tabular}")[1:]:
            columns = part[: part.index("\n")].strip("{}").replace(" ", "")
            lines = [
                line
                for line in part.split(r"\end{tabular}")[0].splitlines()
                if line.endswith(r"\\")
            ]
            assert {line.count(" & ") + 1 for line in lines} == {len(columns)}
            assert part.count(r"\toprule") == part.count(r"\bottomrule") == 1


LATEX = next((name for name in ("pdflatex", "tectonic", "lualatex") if shutil.which(name)), None)


@pytest.mark.skipif(LATEX is None, reason="no LaTeX is installed here")
def test_latex_compiles(papers: list[Cell], tmp_path: Path) -> None:
    assert LATEX is not None
    runs = [run for cell in papers for run in cell.runs]
    found = cells([*runs, *timed("er", 10, 12), *timed("er+gem", 22, 44)])
    named = ("main", "sota", "timing", "gamma", "appendix")
    tables = "\\clearpage\n".join(study_table(name, found).render("latex") for name in named)
    names = latex_text("er+mine(a_b=1%,c=#2&{3}) ~ ^ $ \\")
    start = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "table.tex").write_text(f"{start}{tables}{names}\n\\end{{document}}\n")
    options = [] if LATEX == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([LATEX, *options, "table.tex"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 0


def test_markdown_columns_are_aligned(small: StudyTable) -> None:
    lines = [line for line in small.render("md").splitlines() if line.startswith("|")]
    assert all(len(one) == len(other) for one, other in pairwise(lines))


def test_an_unknown_format_or_table() -> None:
    table = study_table("main", [])
    with pytest.raises(UserError, match="did you mean 'latex'"):
        table.render("latx")
    with pytest.raises(UserError, match="did you mean 'appendix'"):
        study_table("apendix", [])
    assert table.blocks == ()


# The command


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    store = Store(folder)
    store.prepare()
    for run in (*seeded("er", [82, 84]), *seeded("er+gem", [80, 90])):
        store.save(run)
    return folder


def test_the_command_prints_the_table(twofold: Command, store: Path) -> None:
    done = twofold("table", "main", "--runs", store)
    assert done.code == 0
    assert done.out == study_table("main", cells(Store(store).runs())).render("md")


def test_the_example_of_the_guide(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[1] / "docs" / "tables.md").read_text()
    (code,) = re.findall("```python\n(.*?)```", guide, re.DOTALL)
    store.rename(store.parent / "runs")
    monkeypatch.chdir(store.parent)
    exec(compile(code, "tables.md", "exec"), {})
    out = capsys.readouterr().out
    assert r"\begin{tabular}" in out
    assert "rotated-mnist offline 2 seeds in common: nothing can be told of gem" in out


def test_the_command_writes_what_the_name_says(twofold: Command, store: Path) -> None:
    for name, start in (("a.tex", "%"), ("deep/a.csv", "table,"), ("a.json", "{"), ("a.html", "<")):
        file = store.parent / name
        assert twofold("table", "main", "--runs", store, "-o", file) == (0, "", "")
        assert file.read_text().startswith(start)
    file = store.parent / "named.txt"
    assert twofold("table", "main", "--runs", store, "-o", file, "--format", "md").code == 0
    assert file.read_text().startswith("**ER and full replay")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("apendix", "unknown table 'apendix': did you mean 'appendix'?"),
        ("main --profile publish", "unknown profile 'publish': did you mean 'published'?"),
        ("main --format latx", "did you mean 'latex'?"),
        ("sota", "belongs to this table: `twofold study run sota` makes them"),
        ("main --profile published", "`twofold study run main --profile published` makes them"),
        (
            "main --runs nowhere",
            "there are no runs in nowhere: `twofold study run main` makes them",
        ),
        ("main -o table.txt", "what format is table.txt? Say --format md|latex|csv|json|html"),
    ],
    ids=["table", "profile", "format", "others", "other-profile", "empty", "suffix"],
)
def test_mistakes_are_answered_in_one_line(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    done = twofold("table", *words)
    assert done.code == 2
    assert message in one_line(done.err)
    assert done.out == ""
