"""The command `twofold departures`."""

from __future__ import annotations

from pathlib import Path

from helpers.commandline import Command, one_line
from helpers.runs import saved, seeded

from twofold.compare.departures import effects
from twofold.compare.groups import groups
from twofold.experiments.store import Store
from twofold.report.departures import render

TEXT = [80.0, 81.0, 82.0]


def test_the_command(twofold: Command, tmp_path: Path) -> None:
    code = seeded("er", TEXT, memory_grouping="class")
    store = saved(tmp_path / "store", seeded("er", TEXT), code)
    result = twofold("departures", "--runs", store)
    assert (result.code, result.out) == (0, render(effects(groups(Store(store).runs()))))
    file = tmp_path / "effects.csv"
    assert twofold("departures", "--runs", store, "-o", file).code == 0
    assert file.read_text().startswith("departures,benchmark")


def test_nothing_to_compare(twofold: Command, tmp_path: Path) -> None:
    result = twofold("departures", "--runs", saved(tmp_path / "store", seeded("er", TEXT)))
    assert result.code == 2
    assert "a method according to the text and with a departure are needed" in one_line(result.err)
