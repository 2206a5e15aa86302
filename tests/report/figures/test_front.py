"""The front: a point per method, at its measures."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.figures import two_tasks
from helpers.runs import curve_run
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.text import Annotation, Text

from twofold import Run, UserError
from twofold.drawing.style import BLACK, GREEN, PALE
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


def test_colours_tell_the_plain_objective_the_methods_on_the_line_and_the_others():
    """All learn the new task equally fast, so only the one that falls least is on the line."""
    falls = {"er": 70, "er+gem": 85, "er+agem": 80}
    runs = [two_tasks(method, [90, 90, low, 90]) for method, low in falls.items()]
    (axes,) = front_figure(runs).axes
    drawn = {float(each[0].get_ydata()[0]): to_hex(each[0].get_color()) for each in axes.containers}
    colours = [drawn[run.measures["residual"]] for run in runs]
    assert colours == [colour.lower() for colour in (BLACK, GREEN, PALE)]


def learned(method: str, seed: int, low: float, late: int) -> Run:
    """A run whose old task falls to `low`, and whose new task is learned after `late` steps."""
    first = [90.0] * 40 + [low] + [90.0] * 39
    second = [np.nan] * 40 + [20.0] * late + [90.0] * (40 - late)
    return curve_run(method, [first, second], seed)


def test_names_leave_bars_and_the_line_visible():
    methods = {"er": (70, 2), "er+gem": (85, 8), "er+agem": (82, 9), "er+hold": (87, 20)}
    runs = [
        learned(method, seed, low + seed, late + 3 * seed)
        for method, (low, late) in methods.items()
        for seed in range(3)
    ]
    figure = front_figure(runs)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    lines = [line for line in lines if len(line.vertices) > 1]
    for container in axes.containers:
        for bars in container[2]:
            lines += [path.transformed(bars.get_transform()) for path in bars.get_paths()]
    assert len(lines) == 1 + 2 * len(methods)
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert not any(line.intersects_bbox(box, filled=False) for line in lines for box in boxes)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_the_line_joins_exactly_the_points_that_none_beats(places: list[tuple[int, int]]):
    """By the definition: q beats p if it is at least as good in both, and better in one."""
    beaten = {p for p in places for q in places if q != p and q[0] <= p[0] and q[1] <= p[1]}
    assert undominated(places) == sorted(set(places) - beaten)


def test_runs_without_a_switch_have_no_front():
    with pytest.raises(UserError, match="at least one run"):
        front_figure([])
