"""What departures from the text do: which are in force, who is compared with whom, and the sums."""

from __future__ import annotations

from pathlib import Path

from helpers.commandline import Command, one_line
from helpers.runs import seeded

from twofold.compare.departures import effects
from twofold.compare.groups import groups
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.departures import render

TEXT = [80.0, 81.0, 82.0]


def saved(folder: Path, *runs: list[Run]) -> Path:
    store = Store(folder)
    store.prepare()
    for run in (run for own in runs for run in own):
        store.save(run)
    return folder


def test_the_command(twofold: Command, tmp_path: Path) -> None:
    code = seeded("er", TEXT, memory_grouping="class")
    store = saved(tmp_path / "store", seeded("er", TEXT), code)
    done = twofold("departures", "--runs", store)
    assert (done.code, done.out) == (0, render(effects(groups(Store(store).runs()))))
    file = tmp_path / "effects.csv"
    assert twofold("departures", "--runs", store, "-o", file).code == 0
    assert file.read_text().startswith("departures,benchmark")


def test_nothing_to_compare(twofold: Command, tmp_path: Path) -> None:
    done = twofold("departures", "--runs", saved(tmp_path / "store", seeded("er", TEXT)))
    assert done.code == 2
    assert "a method according to the text and with a departure are needed" in one_line(done.err)
