"""Kinds of figures: how they register, and which runs they show."""

from __future__ import annotations

import pytest
from helpers.figures import (
    stored,
    two_tasks,
)
from matplotlib.figure import Figure

from twofold.cli import main
from twofold.report.figures import KINDS, find_kind
from twofold.report.figures.base import figure as register


def test_a_users_figure_registers_itself(tmp_path, capsys):
    @register("mine", "a figure of my own", ["er"], list)
    def mine(runs, task=1):
        return Figure((1, 1))

    try:
        stored([two_tasks("er", [50, 60, 70, 80])], tmp_path)
        words = ["figure", "mine", "rotated-mnist", "--runs", str(tmp_path)]
        assert main([*words, "-o", str(tmp_path / "mine.png")]) == 0
        with pytest.raises(SystemExit, match="0"):
            main(["figure", "--help"])
        output = capsys.readouterr().out
        assert set(KINDS) == {
            "gap",
            "compare",
            "front",
            "diagnosis",
            "joint",
            "gamma",
            "projection-rule",
            "mine",
        }
        for name, kind in KINDS.items():
            assert f"\n  {name} " in output
            assert kind.about in output
    finally:
        del KINDS["mine"]


def test_the_papers_methods_are_shown_unless_others_are_named():
    methods = ["er", "er+gem", "joint", "der", "finetune", "er+gem(gamma=0.1)", "joint(keep=50)"]
    runs = [two_tasks(method, [50, 60, 70, 80]) for method in methods]

    def chosen(runs, *methods):
        runs, _, left_out = find_kind("gap").choose(runs, "rotated-mnist", methods=methods)
        return [run.config.method for run in runs], left_out

    others = ["der", "er+gem(gamma=0.1)", "finetune", "joint(keep=50)"]
    assert chosen(runs) == (["er", "er+gem", "joint"], others)
    assert chosen(runs, "der", "er+gem(0.1)") == (["der", "er+gem(gamma=0.1)"], [])
    assert chosen(runs[3:5]) == (["der", "finetune"], [])  # where there are none of the paper's


def test_of_a_grid_the_setting_where_plain_methods_end_highest_is_shown():
    """ER and joint end at 90 and 91 with 0.1, and at 80 and 99 with 0.01: 90.5 against 89.5."""
    final = {("er", 0.1): 90, ("er", 0.01): 80, ("joint", 0.1): 91, ("joint", 0.01): 99}
    final |= {("er+gem", 0.1): 10, ("er+gem", 0.01): 99}
    runs = [
        two_tasks(method, [50, 60, 70, 80], lr=lr, metrics=(50, avg))
        for (method, lr), avg in final.items()
    ]
    shown = find_kind("gap").choose(runs, "rotated-mnist")
    assert [run.config.method for run in shown.runs] == ["er", "er+gem", "joint"]
    assert {run.config.lr for run in shown.runs} == {0.1}
    assert "highest final accuracy of plain er and joint" in shown.setting
    shown = find_kind("gap").choose(runs, "rotated-mnist", lr=0.01)
    assert {run.config.lr for run in shown.runs} == {0.01}
    assert shown.setting == ""
