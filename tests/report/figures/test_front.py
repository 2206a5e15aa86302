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


def test_runs_without_a_switch_have_no_front():
    with pytest.raises(UserError, match="at least one run"):
        front_figure([])
