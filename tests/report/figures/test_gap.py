"""The figure of stability gaps, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.benchmarks import domain_benchmark
from helpers.figures import (
    BLACK,
    BLUE,
    ORANGE,
    colours,
    curves,
    dashed,
    edges,
    nan,
    panels,
    shares,
    stored,
    two_tasks,
)
from helpers.runs import curve_run
from matplotlib.colors import to_hex

import twofold
from twofold import Store, UserError
from twofold.report.figures import gap_figure, save_figure, select_runs


def test_lines_are_means_and_bands_standard_errors(tmp_path):
    runs = [
        two_tasks("er", [50, 60, 90, 70, 80, 84], seed=142),
        two_tasks("er", [54, 62, 92, 74, 80, 90], seed=152),
        two_tasks("er", [58, 70, 94, 78, 83, 96], seed=162),
    ]
    figure = gap_figure(stored(runs, tmp_path))
    (whole,), (zoom,) = panels(figure, "whole"), panels(figure, "zoom")
    assert curves(whole) == {BLACK: ([1, 2, 3, 4, 5, 6], [54, 64, 92, 74, 81, 90])}
    assert curves(zoom) == {BLACK: ([0, 1, 2, 3], [92, 74, 81, 90])}

    # Deviations of the first iteration: -4, 0, 4; sd with n-1 is 4; over the root of 3.
    # Of the second: -4, -2, 6: sqrt(56 / 2 / 3). Then 2, 4, sqrt(3), 6, all over the root of 3.
    root = np.sqrt(3)
    errors = np.array([4 / root, np.sqrt(56 / 6), 2 / root, 4 / root, 1, 6 / root])
    low, high = edges(whole)
    np.testing.assert_allclose(low, np.array([54, 64, 92, 74, 81, 90]) - errors)
    np.testing.assert_allclose(high, np.array([54, 64, 92, 74, 81, 90]) + errors)


def test_a_single_run_has_no_band_and_methods_may_differ_in_seeds():
    alone = two_tasks("er", [50, 60, 70, 80])
    others = [
        two_tasks("er+gem", [50, 60, y, 90], seed=seed) for y, seed in ((60, 1), (60, 2), (90, 3))
    ]
    (whole,) = panels(gap_figure([alone, *others]), "whole")
    assert curves(whole)[BLACK][1] == [50, 60, 70, 80]
    assert curves(whole)[BLUE][1] == [50, 60, 70, 90]
    assert to_hex(whole.collections[0].get_facecolor()) == BLUE
    low, high = edges(whole)  # 60, 60, 90: sd sqrt(600 / 2), over sqrt(3): 10
    np.testing.assert_allclose(low, [50, 60, 60, 90])
    np.testing.assert_allclose(high, [50, 60, 80, 90])


def test_iterations_that_were_not_evaluated_are_left_out():
    run = two_tasks("er", [nan, 60, 90, nan, 80, 84], eval_schedule="every:2")
    figure = gap_figure([run])
    assert curves(panels(figure, "whole")[0])[BLACK] == ([2, 3, 5, 6], [60, 90, 80, 84])
    assert curves(panels(figure, "zoom")[0])[BLACK] == ([0, 2, 3], [90, 80, 84])


def test_a_later_task_is_shown_from_its_start():
    accuracy = [[1.0] * 6, [nan, nan, 30, 40, 50, 60], [nan, nan, nan, nan, 1, 1]]
    runs = [curve_run("er", accuracy, projected=[0, 0, 0, 1, 1, 0])]
    figure = gap_figure(runs, task=2)
    (whole,), (share,), (zoom,) = (panels(figure, kind) for kind in ("whole", "share", "zoom"))
    assert curves(whole)[BLACK] == ([3, 4, 5, 6], [30, 40, 50, 60])
    assert curves(zoom)[BLACK] == ([0, 1, 2], [40, 50, 60])
    assert zoom.get_title() == "task 3"
    assert whole.get_xlim() == (2, 6)
    assert dashed(whole) == [4]
    assert shares(share) == {BLACK: ([2, 3, 4, 5, 6], [0, 1, 1, 0])}

    last = gap_figure(runs, task=3)
    assert panels(last, "zoom") == []
    assert curves(panels(last, "whole")[0])[BLACK] == ([5, 6], [1, 1])
    with pytest.raises(UserError, match="task must be from 1 to 3 or mean, not 4"):
        gap_figure(runs, task=4)


def test_the_share_is_of_runs_at_each_iteration():
    flags = ([0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0])
    runs = [
        two_tasks("er+gem", [50, 60, 70, 80], seed=seed, projected=list(flag))
        for seed, flag in enumerate(flags)
    ]
    (share,) = panels(gap_figure([*runs, two_tasks("er", [50, 60, 70, 80])]), "share")
    assert shares(share) == {
        BLACK: ([0, 1, 2, 3, 4], [0, 0, 0, 0]),
        BLUE: ([0, 1, 2, 3, 4], [0, 0, 0.75, 0.25]),
    }
    assert share.get_ylabel() == "share projected"


def test_a_column_per_objective_and_a_colour_per_routine():
    methods = ["joint+gem", "joint", "er+gem", "er+agem", "er", "gem", "er+gem(gamma=0.1)"]
    figure = gap_figure([two_tasks(method, [50, 60, 70, 80]) for method in methods])
    assert [part.get_suptitle() for part in figure.subfigs] == ["er", "finetune", "joint"]
    named = colours(figure)
    assert list(named) == ["er", "er+agem", "er+gem, gem, joint+gem", "er+gem(gamma=0.1)", "joint"]
    assert [*named.values()][:3] == [BLACK, ORANGE, BLUE]
    assert len({*named.values()}) == 5
    drawn = [list(curves(panels(figure, "whole", column)[0])) for column in range(3)]
    other = named["er+gem(gamma=0.1)"]
    assert drawn == [[BLACK, ORANGE, BLUE, other], [BLUE], [named["joint"], BLUE]]


def test_an_objective_with_options_has_a_column_of_its_own():
    runs = [two_tasks(method, [50, 60, 70, 80]) for method in ("joint", "joint(keep=50)+gem")]
    figure = gap_figure(runs)
    assert [part.get_suptitle() for part in figure.subfigs] == ["joint", "joint(keep=50)"]
    assert list(curves(panels(figure, "whole", 1)[0])) == [BLUE]


def test_real_runs_go_through(tmp_path):
    for method in ("er", "er+gem"):
        for seed in (1, 2):
            twofold.run(domain_benchmark(), method, seed=seed, batch_size=10, out=tmp_path)
    runs = select_runs(Store(tmp_path).runs(), "domain-toy")
    figure = gap_figure(runs)
    (whole,) = panels(figure, "whole")
    plain = [run for run in runs if run.config.method == "er"]
    mean = (plain[0].accuracy[:, 0] + plain[1].accuracy[:, 0]) / 2
    np.testing.assert_allclose(curves(whole)[BLACK][1], mean, rtol=1e-6)
    assert dashed(whole) == [12, 24]
    save_figure(figure, tmp_path / "figure.png")
