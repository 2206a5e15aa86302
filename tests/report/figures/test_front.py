"""The front: a point per method, at its measures."""

from __future__ import annotations

import pytest
from helpers.figures import two_tasks
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from twofold import Run, UserError
from twofold.report.figures.front import front_figure, undominated


def points(axes: Axes) -> dict[str, tuple[float, float]]:
    """The places of the drawn points, by the names beside them."""
    drawn = {tuple(float(v[0]) for v in container[0].get_data()) for container in axes.containers}
    names = {text.get_text(): text.xy for text in axes.texts if isinstance(text, Annotation)}
    assert set(names.values()) == drawn
    return names


def measured(run: Run) -> tuple[float, float]:
    return run.measures["new_speed"], run.measures["residual"]


def test_a_point_per_method_at_its_measures_in_the_panel_of_its_objective():
    """An old task falls by 20 or by 5 points and comes back."""
    er, gem = two_tasks("er", [90, 70, 80, 90]), two_tasks("er+gem", [90, 85, 90, 90])
    joint = two_tasks("joint+gem", [90, 80, 90, 90])
    first, second = front_figure([er, gem, joint]).axes
    assert (first.get_title("left"), second.get_title("left")) == ("er", "joint")
    assert points(first) == {"er": measured(er), "gem": measured(gem)}
    assert points(second) == {"gem": measured(joint)}
    assert len({y for _, y in points(first).values()}) == 2


def test_a_label_of_ones_own_is_shown_as_it_is():
    runs = [two_tasks("er", [90, 70, 80, 90]), two_tasks("er+gem", [90, 85, 90, 90])]
    (axes,) = front_figure(runs, labels={"er+gem": "mine"}).axes
    assert set(points(axes)) == {"er", "mine"}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_the_line_joins_exactly_the_points_that_none_beats(places: list[tuple[int, int]]):
    """By the definition: q beats p if it is at least as good in both, and better in one."""
    beaten = {p for p in places for q in places if q != p and q[0] <= p[0] and q[1] <= p[1]}
    assert undominated(places) == sorted(set(places) - beaten)


def test_runs_without_a_switch_have_no_front():
    with pytest.raises(UserError, match="at least one run"):
        front_figure([])
