"""Panels: their zooms, bins, limits and sizes."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.figures import (
    BLACK,
    ORANGE,
    curves,
    dashed,
    nan,
    panels,
    shares,
    two_tasks,
)
from helpers.runs import curve_run

from twofold.report.figures import gap_figure


def test_a_zoom_has_the_first_fifty_iterations_after_its_switch():
    accuracy = [float(i) / 2 for i in range(1, 181)]
    later = [[nan] * 60 + [1.0] * 120, [nan] * 120 + [1.0] * 60]
    figure = gap_figure([curve_run("er", [accuracy, *later])])
    first, second = panels(figure, "zoom")
    assert curves(first)[BLACK] == (list(range(51)), [(60 + k) / 2 for k in range(51)])
    assert curves(second)[BLACK] == (list(range(51)), [(120 + k) / 2 for k in range(51)])
    assert [axes.get_title() for axes in (first, second)] == ["task 2", "task 3"]
    assert dashed(first) == dashed(second) == [0]
    for name in ("whole", "share"):
        assert dashed(panels(figure, name)[0]) == [60, 120]


def test_a_short_task_does_not_run_into_the_next():
    accuracy = [[10.0, 20, 30, 40, 50, 60], [nan, nan, 1, 1, 1, 1], [nan, nan, nan, nan, 1, 1]]
    first, second = panels(gap_figure([curve_run("er", accuracy)]), "zoom")
    assert curves(first)[BLACK] == ([0, 1, 2], [20, 30, 40])
    assert curves(second)[BLACK] == ([0, 1, 2], [40, 50, 60])


@pytest.mark.parametrize(
    ("length", "schedules", "reach"),
    [
        (60, ["every"], 50),
        (20, ["every"], 20),
        (60, ["dense:10:50"], 10),
        (8, ["dense:10:50"], 8),
        (60, ["dense:100:50"], 50),
        (60, ["dense:10:1"], 50),  # nothing is left out
        (60, ["dense:10:50", "dense:30:50"], 30),
        (60, ["dense:10:50", "every"], 50),
    ],
)
def test_zooms_end_where_the_tasks_do_or_dense_evaluation_does(length, schedules, reach):
    accuracy = [[nan] * (k * length) + [50.0 + k] * ((3 - k) * length) for k in range(3)]
    runs = [
        curve_run(method, accuracy, eval_schedule=schedule)
        for method, schedule in zip(("er", "joint"), schedules, strict=False)
    ]
    figure = gap_figure(runs)
    for column in range(len(runs)):
        for zoom in panels(figure, "zoom", column):
            assert zoom.get_xlim() == pytest.approx((-0.04 * reach, 1.02 * reach))
            assert list(zoom.get_xticks()) == [0, reach]
            ((x, _),) = curves(zoom).values()
            assert list(x) == list(range(reach + 1))


def test_zooms_of_few_evaluations_far_apart_have_all_fifty():
    run = two_tasks("er", [50.0] * 120, eval_schedule="every:20")
    (zoom,) = panels(gap_figure([run]), "zoom")
    assert list(zoom.get_xticks()) == [0, 50]


def test_many_iterations_are_binned_within_their_task_and_the_label_says_so():
    """302 iterations in bins of 5: 31 bins per task, the last of a single iteration."""
    projected = [0.0] * 302
    projected[151:154] = [1.0] * 3  # of task 2's first bin
    projected[301] = 1.0  # alone in the last
    (share,) = panels(
        gap_figure([two_tasks("er+agem", [50.0] * 302, projected=projected)]), "share"
    )
    ((edges, _),) = shares(share).values()
    assert edges == [*range(0, 151, 5), *range(151, 302, 5), 302]
    expected = np.zeros(62)
    expected[31], expected[61] = 0.6, 1.0
    assert shares(share)[ORANGE][1] == list(expected)
    assert share.get_ylabel() == "share projected\n(5-iteration bins)"


def test_accuracy_axes_are_alike_and_fit_what_follows_the_first_switch():
    runs = [two_tasks("er", [10, 90, 60, 80]), two_tasks("joint", [10, 90, 70, 100])]
    figure = gap_figure(runs)
    axes = [
        a for column in (0, 1) for kind in ("whole", "zoom") for a in panels(figure, kind, column)
    ]
    assert len(axes) == 4
    for one in axes:
        assert one.get_ylim() == pytest.approx((58, 102))  # 60 to 100, and a twentieth


@pytest.mark.parametrize(("methods", "width"), [(["er", "er+gem"], 3.5), (["er", "joint"], 7.0)])
def test_nothing_overlaps_and_the_size_fits_a_paper(methods, width):
    accuracy = [[nan] * 5 * k + [50.0 + k] * (35 - 5 * k) for k in range(7)]
    figure = gap_figure([curve_run(method, accuracy) for method in methods])
    figure.draw_without_rendering()
    assert figure.get_figwidth() == width
    boxes = [figure.legends[0].get_window_extent()]
    for column in range(len(figure.subfigs)):
        assert len(panels(figure, "zoom", column)) == 6
        for kind in ("zoom", "whole", "share"):
            boxes += [axes.get_tightbbox() for axes in panels(figure, kind, column)]
    for k, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:k])
