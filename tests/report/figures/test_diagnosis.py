"""The diagnosis of steps: sums from a switch on, a column per method, and clear refusals."""

from __future__ import annotations

import dataclasses

import pytest
from helpers.figures import (
    BLACK,
    BLUE,
    LENGTH,
    curves,
    diagnosed,
    legend,
    note,
    stored,
    two_tasks,
)
from matplotlib.colors import to_hex

from twofold import Run, Store, UserError
from twofold.drawing.style import DIM, VERMILLION
from twofold.experiments.export import export
from twofold.report.figures import find_kind, save_figure
from twofold.report.figures.diagnosis import CURVATURE, LINES, STATISTICS, diagnosis_figure


def test_changes_are_summed_from_the_switch_on_and_cosines_are_not():
    figure = diagnosis_figure([diagnosed("er"), diagnosed("er+gem", factor=2.0)])
    er, gem, er_cosine, gem_cosine = figure.axes
    assert [er.get_title(), gem.get_title()] == ["er", "er+gem"]
    steps = list(range(1, LENGTH + 1))
    for axes, factor in ((er, 1), (gem, 2)):
        lines = {to_hex(line.get_color()) + line.get_linestyle(): line for line in axes.lines}
        for look, change in (
            (f"{BLACK}-", 0.5),
            (f"{BLUE}-", 0.2),
            (f"{BLUE}--", -0.1),
            (f"{to_hex(VERMILLION)}-", 0.3),
        ):
            assert list(lines[look].get_xdata()) == steps
            expected = [factor * change * step for step in steps]
            assert list(lines[look].get_ydata()) == pytest.approx(expected, rel=1e-5)
    for axes in (er_cosine, gem_cosine):
        expected = [step / 10 for step in steps]
        assert curves(axes)[to_hex(DIM)] == (steps, pytest.approx(expected))
    assert list(legend(figure)) == [name for name, _ in LINES.values()]
    assert er.get_ylim() == gem.get_ylim()


def test_seeds_are_averaged_with_an_error():
    runs = [diagnosed("er", 142), diagnosed("er", 152), diagnosed("er", 162, factor=4.0)]
    axes, cosine = diagnosis_figure(runs, zoom=2).axes
    _, actual = curves(axes)[BLACK]
    assert actual == pytest.approx([1.0, 2.0])
    assert len(axes.collections) == len(LINES)  # a band each
    assert "mean ± standard error over 3 seeds" in note(axes.figure)
    assert len(curves(cosine)[to_hex(DIM)][0]) == 2


def test_seeds_may_start_from_weights_of_their_own_if_all_methods_share_them():
    def started(run: Run, digest: str) -> Run:
        return dataclasses.replace(
            run, config=dataclasses.replace(run.config, start_digest=digest, start_from=digest)
        )

    runs = [
        started(diagnosed(method, seed), str(seed))
        for method in ("er", "er+gem")
        for seed in (142, 152)
    ]
    below = note(diagnosis_figure(runs))
    assert "over 2 seeds" in below
    assert below.endswith("every seed starts from trained weights of its own")
    runs[0] = started(runs[0], "other")
    with pytest.raises(UserError, match="differ in start digest"):
        diagnosis_figure(runs)


def test_when_the_model_was_evaluated_does_not_matter():
    assert "evaluated" not in note(diagnosis_figure([diagnosed("er")])).partition("mode;")[2]


def test_the_statistics_of_batch_norm_have_a_line_if_all_runs_have_them():
    name = "batch norm's statistics, in addition"
    moved = {STATISTICS: 0.7}
    both = [diagnosed("er", **moved), diagnosed("er+gem", **moved)]
    assert name in legend(diagnosis_figure(both))
    assert name not in legend(diagnosis_figure([both[0], diagnosed("er+gem")]))


def test_the_curvature_has_a_row_if_all_runs_have_it():
    bent = [diagnosed("er", **{CURVATURE: 4.0}), diagnosed("er+gem", **{CURVATURE: 2.0})]
    *_, er, gem = diagnosis_figure(bent).axes
    assert "curvature" in er.get_ylabel()
    steps = list(range(1, LENGTH + 1))
    for axes, value in ((er, 4.0), (gem, 2.0)):
        assert curves(axes)[to_hex(VERMILLION)] == (steps, [value] * LENGTH)  # it is not summed
        assert axes.get_xlabel() == "iterations after the switch"
    assert er.get_ylim() == gem.get_ylim()
    assert len(diagnosis_figure([bent[0], diagnosed("er+gem")]).axes) == 4  # as older archives


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": 1}, "task must be one that begins with a switch, from 2 to 2, not 1"),
        ({"task": 3}, "from 2 to 2, not 3"),
        ({"task": "mean"}, "from 2 to 2, not mean"),
        ({"zoom": 0}, "zoom must be a whole number of iterations from 1 on, not 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        diagnosis_figure([diagnosed("er")], **options)


def test_an_archive_keeps_what_the_figure_shows(tmp_path):
    more = {STATISTICS: 0.7, CURVATURE: 3.0}
    runs = [diagnosed("er", **more), diagnosed("er+gem", factor=0.5, **more)]
    stored(runs, tmp_path / "runs")
    export(Store(tmp_path / "runs").folders(), tmp_path / "archive")
    pictures = [tmp_path / "full.png", tmp_path / "archived.png"]
    for picture, folder in zip(pictures, ("runs", "archive"), strict=True):
        shown = find_kind("diagnosis").choose(Store(tmp_path / folder).runs(), "rotated-mnist")
        save_figure(diagnosis_figure(shown.runs), picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_runs_without_a_diagnosis_are_answered_with_the_command(tmp_path, twofold):
    stored([two_tasks("er", [90.0] * 4)], tmp_path / "runs")
    result = twofold(
        *("figure", "diagnosis", "rotated-mnist", "--runs", tmp_path / "runs"),
        *("-o", tmp_path / "x.png"),
    )
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert "no runs for the figure diagnosis: train them with" in line
    assert line.endswith("--diagnose`")
    assert not (tmp_path / "x.png").exists()


def test_diagnosed_runs_are_found_among_others():
    kind = find_kind("diagnosis")
    runs = [two_tasks("er", [90.0] * 4), diagnosed("er"), diagnosed("er+gem")]
    shown = kind.choose(runs, "rotated-mnist", methods=["er"])
    assert [run.config.diagnose for run in shown.runs] == [True]
