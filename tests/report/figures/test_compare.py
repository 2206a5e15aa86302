"""Any methods in one column."""

from __future__ import annotations

import pytest
from helpers.figures import (
    ORANGE,
    legend,
    panels,
    shares,
    two_tasks,
)
from matplotlib.colors import to_hex

from twofold.experiments.naming import canonical
from twofold.report.figures import compare_figure
from twofold.routines import Routine


def test_any_methods_fit_into_one_column():
    methods = ["er", "joint", "er+gem", "joint+gem", "finetune", "der", "der+gem"]
    runs = [two_tasks(m, [50 + k, 60, 70, 80]) for k, m in enumerate(methods)]
    figure = compare_figure(runs)
    (whole,) = panels(figure, "whole")
    first = {
        (to_hex(line.get_color()), line.get_linestyle()): line.get_ydata()[0]
        for line in whole.lines
        if len(line.get_ydata()) == 4
    }
    assert {name: first[look] for name, look in legend(figure).items()} == {
        "der": 55,
        "der+gem": 56,
        "er": 50,
        "er+gem": 52,
        "finetune": 54,
        "joint": 51,
        "joint+gem": 53,
    }
    assert panels(figure, "share") == []  # nothing was projected
    runs.append(two_tasks("er+agem", [50, 60, 70, 80], projected=[0, 0, 0, 1]))
    (share,) = panels(compare_figure(runs), "share")
    assert shares(share)[ORANGE][1] == [0, 0, 0, 1]


BEHIND = ("rescale", "fade")  # which need a routine before them
ALONE = sorted({*Routine.known} - {*BEHIND, "nmc"})


@pytest.mark.parametrize("routine", [*ALONE, *(f"gem+{name}" for name in BEHIND)])
def test_a_routine_by_itself_and_on_er_are_two_lines(routine):
    """`agem` is finetune+agem: another line than that of er+agem."""
    methods = [canonical(method, "rotated-mnist", "paper") for method in (routine, f"er+{routine}")]
    figure = compare_figure([two_tasks(method, [50, 60, 70, 80]) for method in methods])
    assert {*legend(figure)} == {*methods}
    assert len({*legend(figure).values()}) == 2
