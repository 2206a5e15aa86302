"""The figure of stability gaps: what is drawn, against numbers worked out by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from toys import domain_benchmark

import twofold
from twofold import Run, Store, UserError, configure
from twofold.cli import main
from twofold.report.figures import gap_figure, save_figure, select_runs

BLACK, ORANGE, BLUE = "#000000", "#d55e00", "#0072b2"
nan = np.nan


def made(method: str, accuracies: list, *, seed=142, projected=None, per_task=None, **options):
    """A run by hand: `accuracies` has a list of task 1's, 2's, ... as long as the run."""
    length, tasks = len(accuracies[0]), len(accuracies)
    per_task = per_task or length // tasks
    curves = {
        "iteration": np.arange(1, length + 1, dtype=np.int32),
        "task": np.arange(length, dtype=np.int16) // per_task + 1,
        "projected": np.array(projected or [0.0] * length, np.float32),
    }
    for task, accuracy in enumerate(accuracies, 1):
        curves[f"accuracy_{task}"] = np.array(accuracy, np.float32)
    config = configure("rotated-mnist", method, seed=seed, **options)
    return Run(config, {"min": 50.0, "avg": 60.0}, curves)


def two_tasks(method: str, first: list, seed=142, **more):
    """Two tasks; of the second only that it has numbers."""
    half = len(first) // 2
    return made(method, [first, [nan] * half + [50.0] * half], seed=seed, **more)


def stored(runs: list[Run], folder: Path) -> list[Run]:
    for run in runs:
        Store(folder).save(run)
    return Store(folder).runs()


def panels(figure: Figure, kind: str, column: int = 0) -> list[Axes]:
    return [axes for axes in figure.subfigs[column].axes if axes.get_label() == kind]


def curves(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Solid lines by colour."""
    solid = [line for line in axes.lines if line.get_linestyle() == "-"]
    return {
        to_hex(line.get_color()): (list(line.get_xdata()), list(line.get_ydata())) for line in solid
    }


def edges(axes: Axes) -> tuple[list[float], list[float]]:
    """The lower and upper edge of the only band, which has no other points."""
    (band,) = axes.collections
    points = band.get_paths()[0].vertices
    at = {x: [y for other, y in points if other == x] for x in sorted(set(points[:, 0]))}
    return [min(ys) for ys in at.values()], [max(ys) for ys in at.values()]


def dashed(axes: Axes) -> list[float]:
    return [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]


def shares(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Bin edges and values by colour."""
    return {
        to_hex(stairs.get_edgecolor()): (
            list(stairs.get_data().edges),
            pytest.approx(list(stairs.get_data().values)),
        )
        for stairs in axes.patches
    }


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


def test_iterations_that_were_not_evaluated_are_left_out():
    run = two_tasks("er", [nan, 60, 90, nan, 80, 84], eval_every=2)
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
    assert drawn == [[BLACK, ORANGE, BLUE, "#009e73"], [BLUE], [BLACK, BLUE]]
    (legend,) = figure.legends
    named = {text.get_text(): to_hex(line.get_color()) for text, line in _entries(legend)}
    expected = {"sgd": BLACK, "agem": ORANGE, "gem": BLUE, "gem(gamma=0.1)": "#009e73"}
    assert named == expected
    assert list(named) == list(expected)


def _entries(legend):
    return zip(legend.get_texts(), legend.get_lines(), strict=True)


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
    (legend,) = figure.legends
    boxes = [legend.get_window_extent()]
    for column in range(len(figure.subfigs)):
        assert len(panels(figure, "zoom", column)) == 6
        for kind in ("zoom", "whole", "share"):
            boxes += [axes.get_tightbbox() for axes in panels(figure, kind, column)]
    for k, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:k])


def test_long_names_make_the_legend_wrap():
    methods = ["er", *(f"er+gem(gamma={k / 10})" for k in range(1, 10))]
    figure = gap_figure([two_tasks(method, [50, 60, 70, 80]) for method in methods])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    looks = {(to_hex(line.get_color()), line.get_linestyle()) for line in legend.get_lines()}
    assert len(looks) == 10


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_written_and_equal_figures_give_equal_files(tmp_path, suffix):
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    contents = []
    for name in ("one", "two"):
        path = tmp_path / name / f"figure{suffix}"
        save_figure(gap_figure([two_tasks("er", [50, 60, 70, 80])]), path)
        contents.append(path.read_bytes())
    assert contents[0].startswith(starts[suffix])
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.01}, r"er's runs differ in lr \(0\.01, 0\.1\): choose one with --lr"),
        ({"batch_size": 10}, r"in batch size \(10, 128\): choose one with --batch-size"),
        ({"momentum": 0.5}, r"in momentum \(0\.5, 0\.9\): put them in folders of their own"),
        ({"tasks": 2}, r"in tasks \(2, None\): put them"),
        ({"profile": "published"}, r"in profile \(paper, published\)"),
    ],
)
def test_runs_of_a_method_may_differ_in_their_seed_only(options, message):
    runs = [two_tasks("er", [50, 60, 70, 80]), two_tasks("er", [50, 60, 70, 80], 152, **options)]
    with pytest.raises(UserError, match=message):
        gap_figure(runs)


def test_runs_of_different_length_or_mode_do_not_mix():
    short, long = two_tasks("er", [50, 60, 70, 80]), two_tasks("er", [50, 60, 70, 80, 90, 90], 152)
    with pytest.raises(UserError, match=r"iterations \(2, 3\): choose one with --iterations"):
        gap_figure([short, long])
    other = two_tasks("joint", [50, 60, 70, 80, 90, 90])
    with pytest.raises(UserError, match="the runs differ in length"):
        gap_figure([short, other])
    with pytest.raises(UserError, match=r"the runs differ in mode \(offline, online\)"):
        gap_figure([short, two_tasks("joint", [50, 60, 70, 80], mode="online")])
    with pytest.raises(UserError, match="at least one run"):
        gap_figure([])


def test_runs_are_selected_by_benchmark_mode_profile_method_and_settings():
    accuracy = [50, 60, 70, 80]
    runs = {
        "plain": two_tasks("er", accuracy),
        "slow": two_tasks("er", accuracy, lr=0.01),
        "gem": two_tasks("er+gem", accuracy),
        "online": two_tasks("er", accuracy, mode="online"),
        "published": two_tasks("er", accuracy, profile="published"),
        "long": two_tasks("er", accuracy + accuracy),
    }

    def chosen(*place, **more):
        found = select_runs(list(runs.values()), *(place or ("rotated-mnist",)), **more)
        return [name for name, run in runs.items() if any(run is one for one in found)]

    assert chosen() == ["plain", "slow", "gem", "long"]
    assert chosen("rotated-mnist", "online") == ["online"]
    assert chosen(profile="published") == ["published"]
    assert chosen(methods=["er+gem"]) == ["gem"]
    assert chosen(lr=0.01, iterations=None) == ["slow"]
    assert chosen(iterations=4) == ["long"]
    with pytest.raises(UserError, match=r"did you mean 'er\+gem'\? \(there are er, er\+gem\)"):
        chosen(methods=["er+gme"])
    with pytest.raises(UserError, match=r"no runs with batch size 7: there are 128"):
        chosen(batch_size=7)
    there = "there are rotated-mnist, offline, paper; rotated-mnist, offline, published; rotated-m"
    with pytest.raises(UserError, match=f"no runs of split-cifar100, offline, paper: {there}"):
        chosen("split-cifar100")


def test_the_command_draws_what_is_in_a_folder(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "runs"
    for method in ("er", "er+gem"):
        stored([two_tasks(method, [50, 60, 70, 80], seed) for seed in (142, 152)], folder)
    output = tmp_path / "gap.pdf"
    assert main(["figure", "gap", "rotated-mnist", "--runs", str(folder), "-o", str(output)]) == 0
    assert output.read_bytes().startswith(b"%PDF")
    assert capsys.readouterr().out == f"The figure is in {output}; runs: er (2), er+gem (2)\n"

    monkeypatch.chdir(tmp_path)
    assert main(["figure", "gap", "rotated-mnist", "--methods", "er", "--task", "2"]) == 0
    assert "rotated-mnist-offline-gap.png; runs: er (2)" in capsys.readouterr().out
    assert Path("rotated-mnist-offline-gap.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--runs", "nowhere"], "there are no runs in nowhere: make some with `twofold run`"),
        (["--mode", "online"], "no runs of rotated-mnist, online, paper: there are rotated-mnist"),
        (["-o", "gap.gif"], "a figure's name must end in .png, .svg or .pdf, not 'gap.gif'"),
        (["--lr", "0.5"], "no runs with lr 0.5: there are 0.01, 0.1"),
        ([], "er's runs differ in lr (0.01, 0.1): choose one with --lr"),
        (["--lr", "0.1", "--task", "3"], "task must be from 1 to 2, not 3"),
    ],
)
def test_the_command_answers_errors_in_one_line(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored([two_tasks("er", [50, 60, 70, 80], lr=lr) for lr in (0.1, 0.01)], Path("runs"))
    assert main(["figure", "gap", "rotated-mnist", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"twofold: {message}")
    assert error.count("\n") == 1
    assert not list(Path().glob("*.png"))


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
