"""The figure of departures."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commandline import Command
from helpers.runs import grouped, saved, seeded
from matplotlib.axes import Axes

from twofold.compare.departures import effects
from twofold.report.departures import render
from twofold.report.figures.departures import departures_figure

TEXT = [80.0, 81.0, 82.0]


def test_learning_rates_are_told_apart() -> None:
    runs = [
        seeded("er", TEXT, lr=lr, **options)
        for lr in (0.1, 0.01)
        for options in ({}, {"memory_grouping": "class"})
    ]
    all_effects = effects(grouped(*runs))
    assert [each.lr for each in all_effects] == [0.01, 0.01, 0.1, 0.1]
    assert "| offline | 0.01 | 128 | er " in render(all_effects)
    titles = [axes.get_title(loc="left") for axes in departures_figure(all_effects).axes]
    assert titles[::2] == [
        f"Rotated MNIST, offline (LR {lr}, BS 128): AVG (%)" for lr in (0.01, 0.1)
    ]


def test_the_figure_shows_the_text_the_code_and_the_papers_number(
    twofold: Command, tmp_path: Path
) -> None:
    published = seeded("er", [81.0, 83.0, 85.0], [90, 91, 92], profile="published")
    alone = seeded("er", [79.0, 80.0, 81.0], [93, 94, 95], memory_grouping="class")
    runs = [seeded("er", TEXT, [94, 94, 94]), published, alone]
    avg, low = departures_figure(effects(grouped(*runs))).axes
    assert [label.get_text() for label in avg.get_yticklabels()] == ["er: D1", "er: D1, D6"]
    assert shown(avg) == {(94, 0), (94, 1), (94, 0), (91, 1), (91.9, 0), (91.9, 1)}
    assert shown(low) == {(81, 0), (80, 0), (81, 1), (83, 1), (83.1, 0), (83.1, 1)}
    assert [text.get_text() for text in avg.texts] == [
        "  0.0\n  (−3.6 to +3.6)",  # 6.2053 / sqrt(3): two comparisons, two degrees of freedom
        "  −3.0\n  (−6.6 to +0.6)",
    ]
    store = saved(tmp_path / "store", *runs)
    for name in ("departures.png", "departures.svg"):
        assert twofold("departures", "--runs", store, "-o", tmp_path / name).code == 0
        assert (tmp_path / name).stat().st_size > 5000


@pytest.mark.parametrize(
    ("less", "avg_comparable"), [({"tasks": 2}, False), ({"eval_size": 250}, True)]
)
def test_the_figure_has_the_papers_number_only_beside_the_same_quantity(
    less: dict[str, int], avg_comparable: bool
) -> None:
    code = seeded("er", TEXT, memory_grouping="class", **less)
    avg, low = departures_figure(effects(grouped(seeded("er", TEXT, **less), code))).axes
    assert ((91.9, 0) in shown(avg)) == avg_comparable
    assert (83.1, 0) not in shown(low)


def shown(axes: Axes) -> set[tuple[float, float]]:
    """Return the places of the marks."""
    lines = [line for line in axes.lines if len(line.get_xdata()) == 1]
    return {(round(line.get_xdata()[0], 6), line.get_ydata()[0]) for line in lines}
