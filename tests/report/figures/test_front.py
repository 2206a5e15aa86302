"""The front: a point per method, at its measures."""

from __future__ import annotations

import pytest
from helpers.figures import two_tasks

from twofold import UserError
from twofold.report.figures.front import front_figure


def test_a_point_per_method_at_its_measures():
    """An old task falls by 20 or by 5 points and comes back."""
    runs = [two_tasks("er", [90, 70, 80, 90]), two_tasks("er+gem", [90, 85, 90, 90])]
    figure = front_figure(runs)
    (axes,) = figure.axes
    points = {
        label: tuple(float(v[0]) for v in container[0].get_data())
        for container, label in zip(
            axes.containers, axes.get_legend_handles_labels()[1], strict=True
        )
    }
    expected = {
        f"{number}  {run.config.method}": (run.measures["new_speed"], run.measures["residual"])
        for number, run in enumerate(runs, 1)
    }
    assert points == expected
    assert len({y for _, y in points.values()}) == 2


@pytest.mark.parametrize("count", [2, 30])
def test_the_legend_of_many_methods_stays_above_the_note(count: int):
    methods = [f"er+gem(gamma={number / 100})" for number in range(count)]
    figure = front_figure([two_tasks(method, [90, 85, 90, 90]) for method in methods])
    figure.draw_without_rendering()
    (legend,), (note,) = figure.legends, figure.texts
    assert legend.get_window_extent().y0 > note.get_window_extent().y1


def test_runs_without_a_switch_have_no_front():
    with pytest.raises(UserError, match="at least one run"):
        front_figure([])
