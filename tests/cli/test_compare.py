"""The command `twofold compare`."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commandline import Command, one_line
from helpers.runs import saved, seeded

from twofold import Store, comparison
from twofold.report.comparison import render


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    er, gem = [80.0, 82, 81], [84.0, 85, 87]
    runs = [
        seeded("er", er),
        seeded("er+gem", gem),
        seeded("er", er, lr=0.01),
        seeded("er+gem", gem, lr=0.01),
    ]
    return saved(tmp_path_factory.mktemp("runs") / "store", *runs)


def test_it_prints_the_comparison_of_the_selected_runs(twofold: Command, store: Path) -> None:
    words = ["compare", "er", "er+gem", "--runs", store, "--lr", "0.1", "--metrics", "avg"]
    chosen = Store(store).runs().where(lr=0.1)
    expected = comparison(chosen, "er", "er+gem", metrics=["avg"])
    assert twofold(*words).out == render(expected, "md")
    file = store.parent / "compared.csv"
    assert twofold(*words, "-o", file).code == 0
    assert file.read_text() == render(expected, "csv")
    by_lr = twofold("compare", "0.1", "0.01", "--by", "lr", "--runs", store, "--method", "er")
    assert by_lr.out.startswith("**lr 0.01 compared with lr 0.1** (Rotated MNIST, offline, er, ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("er er+gem", "2 settings could be compared (lr 0.1, 0.01): add --lr 0.1, for instance"),
        ("er er+gme", "unknown method 'er+gme': did you mean 'er+gem'?"),
        ("er", "name at least two to compare"),
        ("er er+gem --lr 0.5", "unknown lr '0.5': did you mean '0.1'? (there are 0.01, 0.1)"),
        ("er er+gem --lr 0.1 --metrics mni", "unknown metric 'mni': did you mean 'min'?"),
        ("er er+gem --lr 0.1 --format xml", "unknown format 'xml'"),
        ("er er+gem --runs nowhere", "there is no folder nowhere"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    result = twofold("compare", *words)
    assert (result.code, result.out) == (2, "")
    assert message in one_line(result.err)
