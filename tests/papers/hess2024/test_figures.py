"""The paper's own figures, against numbers worked out by hand."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from helpers.figures import (
    BLUE,
    colours,
    curves,
    dashed,
    edges,
    note,
    panels,
    shares,
    two_tasks,
)
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from twofold import Run, UserError
from twofold.papers.hess2024.figures import gamma_figure, joint_figure, projection_rule_figure
from twofold.papers.hess2024.reference import FILES

GREY = "#a0a0a0"


def heights(axes: Axes) -> dict[str, list[float]]:
    """The lines' values by colour."""
    return {colour: y for colour, (_, y) in curves(axes).items()}


def test_figure_1_is_the_whole_curve_of_full_replay_alone():
    runs = [
        two_tasks("joint", [50, 60, 90, 70, 80, 84], seed=142),
        two_tasks("joint", [54, 62, 92, 74, 80, 90], seed=152),
        two_tasks("joint", [58, 70, 94, 78, 83, 96], seed=162),
        two_tasks("joint+gem", [1, 2, 3, 4, 5, 6]),
        two_tasks("er", [1, 2, 3, 4, 5, 6]),
    ]
    figure = joint_figure(runs)
    (whole,) = figure.subfigs[0].axes
    mean = [54, 64, 92, 74, 81, 90]
    assert [*curves(whole).values()] == [([1, 2, 3, 4, 5, 6], mean)]
    # Deviations are -4, 0, 4; -4, -2, 6; -2, 0, 2; -4, 0, 4; -1, -1, 2; -6, 0, 6. Errors are the
    # roots of their squares, summed, over 2, over 3.
    errors = np.sqrt(np.array([32, 56, 8, 32, 6, 72]) / 2 / 3)
    low, high = edges(whole)
    np.testing.assert_allclose(low, mean - errors)
    np.testing.assert_allclose(high, mean + errors)
    assert dashed(whole) == [3]
    assert whole.get_xlabel() == "iteration"
    assert figure.get_figwidth() == 3.5
    with pytest.raises(UserError, match="no runs for the figure joint: train them with `twofold r"):
        joint_figure(runs[3:])


def test_the_rules_of_projection_are_compared():
    violated = two_tasks("er+gem", [50, 60, 70, 80], projected=[0, 0, 1, 0])
    always = two_tasks("er+gem(when=always)", [50, 60, 75, 85], projected=[0, 0, 1, 1])
    other = two_tasks("er+gem(gamma=0.1,when=always)", [1, 2, 3, 4])
    figure = projection_rule_figure([always, other, violated])
    (whole,), (share,), (zoom,) = (panels(figure, kind) for kind in ("whole", "share", "zoom"))
    always_colour = colours(figure)["always"]
    assert colours(figure) == {"where a constraint is violated": BLUE, "always": always_colour}
    assert heights(whole) == {BLUE: [50, 60, 70, 80], always_colour: [50, 60, 75, 85]}
    assert heights(zoom) == {BLUE: [60, 70, 80], always_colour: [60, 75, 85]}
    edges = [0, 1, 2, 3, 4]
    assert shares(share) == {BLUE: (edges, [0, 0, 1, 0]), always_colour: (edges, [0, 0, 1, 1])}
    for alone in (violated, always):
        with pytest.raises(UserError, match="no runs for the figure projection-rule"):
            projection_rule_figure([alone, other])


def gamma_runs(**options) -> list[Run]:
    """Three seeds of ER, and of ER+GEM with gamma 1, 0.5 (its default) and 0."""
    values = {
        "er+gem(gamma=1,when=always)": [(88, 93), (90, 94), (92, 95)],
        "er+gem(gamma=0.5,when=always)": [(80, 90), (80, 91), (83, 95)],
        "er+gem(gamma=0,when=always)": [(70, 80), (71, 81), (72, 82)],
        "er": [(60, 70), (64, 72), (68, 80)],
    }
    return [
        two_tasks(method, [50, 60, low, avg], seed, metrics=(low, avg), **options)
        for method, pairs in values.items()
        for seed, (low, avg) in enumerate(pairs)
    ]


def points(axes: Axes) -> dict[str, dict[float, tuple[float, float]]]:
    """Means and errors by gamma, from points with bars; by colour."""
    result: dict[str, dict[float, tuple[float, float]]] = {}
    for mark, _, (bar,) in (container.lines for container in axes.containers):
        (x, low), (_, high) = bar.get_segments()[0]
        (mean,) = mark.get_ydata()
        assert mean == pytest.approx((low + high) / 2)
        result.setdefault(to_hex(mark.get_color()), {})[float(x)] = (mean, (high - low) / 2)
    return result


def metric(figure: Figure, name: str) -> Axes:
    (axes,) = [axes for axes in figure.subfigs[1].axes if axes.get_label() == name]
    return axes


def test_min_and_avg_over_gamma_with_plain_er_as_a_band():
    others = ["er+gem", "joint", "er+gem(rule=added,when=always)"]
    runs = gamma_runs(iterations=2) + [two_tasks(m, [1, 2, 3, 4]) for m in others]
    figure = gamma_figure(runs)
    root = np.sqrt(3)  # of n; standard deviations are with n-1
    expected = {
        "min": {0: (71, 1 / root), 0.5: (81, np.sqrt(3) / root), 1: (90, 2 / root)},
        "avg": {0: (81, 1 / root), 0.5: (92, np.sqrt(7) / root), 1: (94, 1 / root)},
    }
    band = {"min": (64, 4 / root), "avg": (74, np.sqrt(28) / root)}
    curve = colours(figure)
    for name, numbers in expected.items():
        axes = metric(figure, name)
        assert points(axes) == {
            curve[f"γ = {gamma}"]: {gamma: pytest.approx(pair)} for gamma, pair in numbers.items()
        }
        box = axes.patches[0].get_extents().transformed(axes.transData.inverted())
        mean, error = band[name]
        assert (box.y0, box.y1) == pytest.approx((mean - error, mean + error))
    assert "the paper's values" not in note(figure)  # which is not of shortened runs


def test_above_are_the_curves_of_each_gamma():
    figure = gamma_figure(gamma_runs())
    (whole,), (zoom,) = panels(figure, "whole"), panels(figure, "zoom")
    assert list(colours(figure)) == ["er", "γ = 0", "γ = 0.5", "γ = 1"]
    means = {"er": [64, 74], "γ = 0": [71, 81], "γ = 0.5": [81, 92], "γ = 1": [90, 94]}
    for name, colour in colours(figure).items():
        assert heights(whole)[colour] == [50, 60, *means[name]]
        assert heights(zoom)[colour] == [60, *means[name]]


@pytest.mark.parametrize("profile", ["paper", "published"])
def test_the_papers_gamma_study_is_drawn_beside_runs_of_its_kind(profile):
    file = FILES / "gamma_study.csv"
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    figure = gamma_figure(gamma_runs(profile=profile))
    assert "grey diamonds: the paper's values; dotted: its er" in note(figure)
    for name in ("min", "avg"):
        printed = {
            row["gamma"]: (float(row["mean"]), float(row["sem"]))
            for row in rows
            if (row["benchmark"], row["metric"].lower()) == ("rotated-mnist", name)
        }
        axes = metric(figure, name)
        assert points(axes)[GREY] == {
            gamma: pytest.approx(printed[str(gamma)]) for gamma in (0.0, 0.5, 1.0)
        }
        dotted = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == ":"]
        assert dotted == [printed[""][0]]


@pytest.mark.parametrize(
    ("options", "compared"),
    [
        ({"lr": 0.01}, []),
        ({"memory_per_class": 50}, []),
        ({"mode": "online"}, []),
        ({"eval_size": 200}, ["avg"]),  # AVG is on the whole test sets
        (
            {"eval_schedule": "every:2"},
            ["min", "avg"],
        ),  # and the note says that MIN is an upper bound
    ],
    ids=lambda value: "-".join(value),
)
def test_the_papers_values_are_not_drawn_beside_other_runs(options, compared):
    figure = gamma_figure(gamma_runs(**options))
    assert [name for name in ("min", "avg") if GREY in points(metric(figure, name))] == compared
