"""The numbers that the paper prints."""

from __future__ import annotations

from helpers.runs import grouped, seeded
from helpers.tables import number, printed_rows, rows

from twofold.compare.reference import printed, slips
from twofold.report.tables import notes, render, study_table


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
    present = study_table("main", grouped(seeded("er", [1, 3], **{**setting, "batch_size": 64})))
    assert number(present, "er").printed == (3.3, 0.2)
    assert not any("a slip" in note for note in notes(present))
