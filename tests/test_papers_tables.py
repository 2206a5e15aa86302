"""The paper's tables from its own numbers: settings, bold and layout are the printed ones."""

from __future__ import annotations

import pytest
from helpers.runs import grouped, seeded
from helpers.tables import PRINTED_BOLD, UNLIKE_PRINTED, number, printed_rows, rows

from twofold.compare.groups import Group
from twofold.compare.reference import printed, slips
from twofold.compare.selection import Setting
from twofold.experiments import studies
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
        *("83.1 ± 0.5 (n=2)", "**84.1 ± 0.4** (n=2)", "82.5 ± 0.7 (n=2)"),
        *("**86.7 ± 0.8** (n=2)", "**87.5 ± 0.9** (n=2)", "**86.6 ± 0.6** (n=2)"),
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
    there = {point.options["method"] for point in studies.load(layout.study).points}
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
    assert set(slips("hess2024")) == {("split-mini-imagenet", "online", 10)}
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
    table = study_table("main", grouped(seeded("er", [1, 3], **setting)))
    assert number(table, "er").printed is None
    assert number(table, "er").difference is None
    assert any("a slip" in note for note in notes(table))
    assert "reference" not in [line[4] for line in rows(render(table, "md"))]
    there = study_table("main", grouped(seeded("er", [1, 3], **{**setting, "batch_size": 64})))
    assert number(there, "er").printed == (3.3, 0.2)
    assert not any("a slip" in note for note in notes(there))
