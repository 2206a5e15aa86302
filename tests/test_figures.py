"""Figures: what is drawn, against numbers worked out by hand; and the files they become."""

from __future__ import annotations

import dataclasses
import io
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from helpers.benchmarks import domain_benchmark
from helpers.figures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    colours,
    curves,
    dashed,
    edges,
    legend,
    made,
    nan,
    note,
    panels,
    shares,
    stored,
    two_tasks,
)
from matplotlib.colors import to_hex
from PIL import Image

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
    pair = [two_tasks("er+gem", [50, 60, y, 90], seed=seed) for y, seed in ((60, 1), (80, 2))]
    (whole,) = panels(gap_figure([alone, *pair]), "whole")
    assert curves(whole)[BLACK][1] == [50, 60, 70, 80]
    assert curves(whole)[BLUE][1] == [50, 60, 70, 90]
    assert to_hex(whole.collections[0].get_facecolor()) == BLUE
    assert edges(whole) == ([50, 60, 60, 90], [50, 60, 80, 90])  # sd sqrt(200), over sqrt(2): 10


def test_a_zoom_has_the_first_fifty_iterations_after_its_switch():
    accuracy = [float(i) / 2 for i in range(1, 181)]
    later = [[nan] * 60 + [1.0] * 120, [nan] * 120 + [1.0] * 60]
    figure = gap_figure([made("er", [accuracy, *later])])
    first, second = panels(figure, "zoom")
    assert curves(first)[BLACK] == (list(range(51)), [(60 + k) / 2 for k in range(51)])
    assert curves(second)[BLACK] == (list(range(51)), [(120 + k) / 2 for k in range(51)])
    assert [axes.get_title() for axes in (first, second)] == ["task 2", "task 3"]
    assert dashed(first) == dashed(second) == [0]
    for name in ("whole", "share"):
        assert dashed(panels(figure, name)[0]) == [60, 120]


def test_a_short_task_does_not_run_into_the_next():
    accuracy = [[10.0, 20, 30, 40, 50, 60], [nan, nan, 1, 1, 1, 1], [nan, nan, nan, nan, 1, 1]]
    first, second = panels(gap_figure([made("er", accuracy)]), "zoom")
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
def test_zooms_end_where_the_tasks_do_or_what_was_judged_one_by_one(length, schedules, reach):
    accuracy = [[nan] * (k * length) + [50.0 + k] * ((3 - k) * length) for k in range(3)]
    runs = [
        made(method, accuracy, eval_schedule=schedule)
        for method, schedule in zip(("er", "joint"), schedules, strict=False)
    ]
    figure = gap_figure(runs)
    for column in range(len(runs)):
        for zoom in panels(figure, "zoom", column):
            assert zoom.get_xlim() == pytest.approx((-0.04 * reach, 1.02 * reach))
            assert list(zoom.get_xticks()) == [0, reach]
            assert list(curves(zoom)[BLACK][0]) == list(range(reach + 1))


def test_zooms_of_few_evaluations_far_apart_have_all_fifty():
    run = two_tasks("er", [50.0] * 120, eval_schedule="every:20")
    (zoom,) = panels(gap_figure([run]), "zoom")
    assert list(zoom.get_xticks()) == [0, 50]


def test_iterations_that_were_not_evaluated_are_left_out():
    run = two_tasks("er", [nan, 60, 90, nan, 80, 84], eval_schedule="every:2")
    figure = gap_figure([run])
    assert curves(panels(figure, "whole")[0])[BLACK] == ([2, 3, 5, 6], [60, 90, 80, 84])
    assert curves(panels(figure, "zoom")[0])[BLACK] == ([0, 2, 3], [90, 80, 84])


def test_a_later_task_is_shown_from_its_start():
    accuracy = [[1.0] * 6, [nan, nan, 30, 40, 50, 60], [nan, nan, nan, nan, 1, 1]]
    runs = [made("er", accuracy, projected=[0, 0, 0, 1, 1, 0])]
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
    with pytest.raises(UserError, match="task must be from 1 to 3, not 4"):
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


def test_many_iterations_are_binned_within_their_task_and_the_label_says_so():
    """302 iterations in bins of 5: 31 bins a task, the last of a single iteration."""
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


def test_a_column_an_objective_a_colour_a_routine():
    methods = ["joint+gem", "joint", "er+gem", "er+agem", "er", "gem", "er+gem(gamma=0.1)"]
    figure = gap_figure([two_tasks(method, [50, 60, 70, 80]) for method in methods])
    assert [part.get_suptitle() for part in figure.subfigs] == ["er", "finetune", "joint"]
    drawn = [list(curves(panels(figure, "whole", column)[0])) for column in range(3)]
    assert drawn == [[BLACK, ORANGE, BLUE, GREEN], [BLUE], [BLACK, BLUE]]
    named = colours(figure)
    expected = {"sgd": BLACK, "agem": ORANGE, "gem": BLUE, "gem(gamma=0.1)": GREEN}
    assert named == expected
    assert list(named) == list(expected)


def test_an_objective_with_options_has_a_column_of_its_own():
    runs = [two_tasks(method, [50, 60, 70, 80]) for method in ("joint", "joint(keep=50)+gem")]
    figure = gap_figure(runs)
    assert [part.get_suptitle() for part in figure.subfigs] == ["joint", "joint(keep=50)"]
    assert list(curves(panels(figure, "whole", 1)[0])) == [BLUE]


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
    figure = gap_figure([made(method, accuracy) for method in methods])
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


@pytest.mark.parametrize("methods", [["er", "er+gem"], ["er", "joint"]])
@pytest.mark.parametrize("title", ["Offline Rotated MNIST", "Rotated MNIST\noffline"])
def test_a_title_has_room_above_the_legend(methods, title):
    figure = gap_figure([two_tasks(method, [50, 60, 70, 80]) for method in methods])
    before = figure.get_figheight()
    figure.suptitle("another")
    text = figure.suptitle(title)
    figure.draw_without_rendering()
    shown = [axes.get_tightbbox() for part in figure.subfigs for axes in part.axes]
    upper = [text.get_window_extent(), figure.legends[0].get_window_extent()]
    assert upper[0].y1 <= figure.bbox.y1
    assert upper[0].y0 >= upper[1].y1
    assert upper[1].y0 >= max(box.y1 for box in shown)
    inches = upper[0].height / figure.dpi
    assert inches < figure.get_figheight() - before < inches + 0.1  # what is below keeps its size


def test_long_names_wrap_and_no_two_curves_look_alike():
    """Sixteen methods, one of whose names alone is wider than the figure."""
    longest = "gem(gamma=0.25,when=always,rule=added,references=cumulative,ridge=0.01)+agem"
    hows = ["gem", "agem", longest, *(f"gem(gamma={k})" for k in range(1, 13))]
    runs = [
        two_tasks(method, [50, 60, 70, 80]) for method in ("er", *(f"er+{how}" for how in hows))
    ]
    figure = gap_figure(runs)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert not any(box.overlaps(axes.get_tightbbox()) for axes in panels(figure, "zoom"))
    names = {name.replace("\n", ""): name for name in legend(figure)}
    assert "\n" in names[longest]
    shown = set(legend(figure).values())
    (whole,) = panels(figure, "whole")
    assert len(shown) == 16
    assert shown <= {(to_hex(line.get_color()), line.get_linestyle()) for line in whole.lines}


def test_names_are_taken_as_they_are(tmp_path):
    """A dollar starts no formula."""
    run = two_tasks("er", [50, 60, 70, 80])
    config = dataclasses.replace(run.config, benchmark="my $x^ \\frac{$ <b>&", method="er+$a_{$")
    figure = gap_figure([dataclasses.replace(run, config=config)])
    save_figure(figure, tmp_path / "figure.svg")
    check_svg((tmp_path / "figure.svg").read_bytes())
    assert note(figure).startswith("my $x^ \\frac{$ <b>&, offline")
    assert list(legend(figure)) == ["$a_{$"]


def check_png(content: bytes):
    picture = Image.open(io.BytesIO(content))
    picture.load()
    assert picture.size[0] == 700  # 3.5 inches of 200 dots


def check_svg(content: bytes):
    root = ElementTree.fromstring(content)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width") == "252pt"  # 3.5 inches of 72 points


def check_pdf(content: bytes):
    assert content.startswith(b"%PDF-1.")
    assert content.rstrip().endswith(b"%%EOF")
    assert b"/MediaBox [ 0 0 252 " in content
    assert b"/Type3" not in content  # TrueType fonts, which journals ask for


@pytest.mark.parametrize(
    ("suffix", "check"), [(".png", check_png), (".svg", check_svg), (".pdf", check_pdf)]
)
def test_files_are_valid_and_equal_figures_give_equal_files(tmp_path, suffix, check):
    contents = []
    for name in ("one", "two"):
        path = tmp_path / name / f"figure{suffix}"
        save_figure(gap_figure([two_tasks("er", [50, 60, 70, 80])]), path)
        contents.append(path.read_bytes())
    check(contents[0])
    assert contents[0] == contents[1]
    assert b"Date" not in contents[0]


def test_matplotlib_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would now fail
    before = mpl.rcParams.copy()
    save_figure(gap_figure([two_tasks("er", [50, 60, 70, 80])]), tmp_path / "figure.png")
    assert mpl.rcParams.copy() == before


def test_a_figure_that_cannot_be_written_is_an_error_in_one_line(tmp_path):
    figure = gap_figure([two_tasks("er", [50, 60, 70, 80])])
    with pytest.raises(UserError, match=r"must end in \.png, \.svg or \.pdf, not 'figure.jpg'"):
        save_figure(figure, tmp_path / "figure.jpg")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"can't write .*: "):
        save_figure(figure, tmp_path / "file" / "figure.png")


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
