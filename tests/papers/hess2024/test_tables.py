"""The paper's tables: from its own numbers, settings, bold and layout are the printed ones."""

from __future__ import annotations

import pytest
from helpers.runs import grouped, seeded
from helpers.tables import PRINTED_BOLD, UNLIKE_PRINTED, number, rows, timed

from twofold.compare.groups import Group
from twofold.compare.shelf import Setting
from twofold.experiments import studies
from twofold.experiments.runs import Run
from twofold.papers.hess2024.tables import TABLES
from twofold.report.tables import notes, render, study_table

PLACES = [
    (benchmark, mode)
    for benchmark in ("rotated-mnist", "domain-cifar100", "split-cifar100", "split-mini-imagenet")
    for mode in ("offline", "online")
]


def test_from_the_papers_grid_the_papers_settings_are_chosen(papers: list[Group]) -> None:
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


def test_the_bold_rule_on_the_papers_own_numbers(papers: list[Group]) -> None:
    unlike = set()
    for n in study_table("main", papers).numbers():
        place = (*n.section.place, n.metric.name)
        columns = [column.method for group in TABLES["main"].groups for column in group]
        bold = PRINTED_BOLD[place].replace(" ", "")[columns.index(n.method)] == "x"
        if n.bold != bold:
            unlike.add((*n.section.place, n.method, n.metric.name))
    assert unlike == UNLIKE_PRINTED


def test_the_papers_numbers_are_no_different_from_themselves(papers: list[Group]) -> None:
    for name in ("main", "sota", "appendix"):
        numbers = list(study_table(name, papers).numbers())
        assert all(n.value is not None and n.printed is not None for n in numbers)
        assert all(n.difference == pytest.approx(0, abs=1e-9) for n in numbers)
        for n in numbers:
            assert n.value == (pytest.approx(n.printed[0]), pytest.approx(n.printed[1], abs=1e-9))
    # 39 usable settings of 11 or 13 methods: 1,152 cells less the 78 of the slip.
    assert len(numbers) == 1152 - 78


def test_the_grey_cells_of_the_appendix(papers: list[Group]) -> None:
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


def test_the_layout_of_the_main_table(papers: list[Group]) -> None:
    text = render(study_table("main", papers), "md")
    head, *body = rows(text)
    er, joint = ["ER", "ER + GEM", "ER + A-GEM"], ["Joint", "Joint + GEM", "Joint + A-GEM"]
    assert head == ["benchmark", "mode", "LR", "BS", "metric", *er, *joint]
    assert body[0] == [
        *("Rotated MNIST", "offline", "0.1", "128", "MIN"),
        *("83.1 ± 0.5 (n=3)", "**84.1 ± 0.4** (n=3)", "82.5 ± 0.7 (n=3)"),
        *("**86.7 ± 0.8** (n=3)", "**87.5 ± 0.9** (n=3)", "**86.6 ± 0.6** (n=3)"),
    ]
    assert body[1][:6] == ["", "", "", "", "reference", "83.1 ± 0.5"]
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


def test_the_layout_of_the_second_table(papers: list[Group]) -> None:
    head, *body = rows(render(study_table("sota", papers), "md"))
    assert head[5:] == ["DER", "DER + A-GEM", "BiC", "BiC + A-GEM"]
    domain = [line for line in body if line[4] == "MIN"][:2]
    assert [line[7:] for line in domain] == [["–", "–"], ["–", "–"]]  # no BiC there
    assert "**" not in render(study_table("sota", papers), "md").split("\n\n", 1)[1]


def test_the_layout_of_the_appendix(papers: list[Group]) -> None:
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
    present = {point.options["method"] for point in studies.load(layout.study).points}
    assert present == {column.method for group in layout.groups for column in group}


def chosen(*runs: list[Run], name: str = "main") -> tuple[Setting, str]:
    ((setting, why),) = study_table(name, grouped(*runs)).choices.values()
    return setting, why


def test_the_second_table_goes_by_der_and_bic() -> None:
    place = {"benchmark": "split-cifar100"}
    runs = [
        seeded("der", [1], [20], **place),
        seeded("bic", [1], [30], **place),
        seeded("der", [1], [22], lr=0.01, **place),
        seeded("bic", [1], [29], lr=0.01, **place),  # 25.5 beside 25
        seeded("er", [1], [99], lr=0.001, **place),
    ]
    assert chosen(*runs, name="sota")[0] == Setting(0.01, 128)


def test_settings_beyond_the_papers_are_in_the_appendix() -> None:
    runs = (seeded("er", [80]), seeded("er", [81], lr=0.05), seeded("er", [82], batch_size=64))
    (block,) = study_table("appendix", grouped(*runs)).blocks
    assert [row.heads[:2] for row in block.rows[::2]] == [
        ("64", "0.1"),
        ("128", "0.1"),
        ("128", "0.05"),
    ]


def test_the_gamma_study() -> None:
    gammas = {"0": 84.4, "0.05": 85.6, "0.1": 86.8, "0.5": 89.1, "0.8": 89.5, "1": 90.0}
    runs = [
        seeded(f"er+gem(gamma={gamma},when=always)", [low - 0.3, low, low + 0.3])
        for gamma, low in gammas.items()
    ]
    table = study_table("gamma", grouped(*runs, seeded("er", [82.2, 83.1, 84.0])))
    assert [block.title for block in table.blocks] == ["Rotated MNIST, offline, LR 0.1, BS 128"]
    head, low, paper, difference, *_ = rows(render(table, "md"))
    assert head[1:] == [*(f"γ = {gamma}" for gamma in gammas), "ER"]
    assert low[6:] == ["**90.0 ± 0.2** (n=3)", "83.1 ± 0.5 (n=3)"]
    assert paper[1:] == [
        *("84.4 ± 0.7", "85.6 ± 0.5", "86.8 ± 0.5", "89.1 ± 0.2", "89.5 ± 0.4", "90.0 ± 0.2"),
        "83.1 ± 0.5",
    ]
    assert {text.split()[0] for text in difference[1:]} == {"0.0"}
    assert any("No runs yet: Domain CIFAR-100 (offline)" in note for note in notes(table))


def test_the_time_of_training() -> None:
    # er: 10, 10, 13: 11 +- sqrt(6 / 2 / 3) = 1. er+gem: 22, 22, 55: 33 +- sqrt(726 / 2 / 3) = 11,
    # three times as long; the error of the ratio is 3 sqrt((11 / 33)^2 + (1 / 11)^2) = 1.0366.
    table = study_table("timing", grouped(timed("er", 10, 10, 13), timed("er+gem", 22, 22, 55)))
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
    head, *body = rows(render(table, "md"))
    assert head == ["method", "Time [s]", "Times ER"]
    assert [line for line in body if line[0].startswith(("ER", "reference"))][:4] == [
        ["ER", "11.00 ± 1.00 (n=3)", "1.00 (n=3)"],
        ["reference", "59.24 ± 0.66", "1.00"],
        ["ER + A-GEM", "–", "–"],
        ["reference", "61.52 ± 0.60", "1.04 ± 0.02"],
    ]


def test_time_is_taken_from_runs_that_were_made_for_it() -> None:
    every_iteration = timed("er", 50, 50, 50, 50, eval_schedule="every:1")
    table = study_table("timing", grouped(every_iteration, timed("er", 10, 10, 13)))
    assert number(table, "er", "seconds.training").value == (11, pytest.approx(1))
    alone = study_table("timing", grouped(every_iteration))
    assert number(alone, "er", "seconds.training").value == (50, pytest.approx(0))


def test_times_without_er_have_no_ratio() -> None:
    table = study_table("timing", grouped(timed("er+gem", 22, 44)))
    assert number(table, "er+gem", "seconds.training/er").value is None
