"""Runs as notebooks use them: frames, one line of text, and an HTML table."""

from __future__ import annotations

import dataclasses
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.runs import curve_run, gap_accuracies, scored_run

from twofold import Run, Store, UserError
from twofold.experiments import runs as module
from twofold.experiments.columns import StoredColumns
from twofold.experiments.several import Runs
from twofold.experiments.summary import result_text


def example_run(method: str = "er", seed: int = 142, **options: Any) -> Run:
    return curve_run(method, gap_accuracies(60, 3, seed), seed, **options)


@pytest.fixture
def several() -> Runs:
    return Runs(
        example_run(method, seed) for method in ("er", "er+gem") for seed in (142, 152, 162)
    )


def test_a_run_is_one_line() -> None:
    run = example_run("er+gem")
    expected = f"MIN {run.min:.1f}, AVG {run.avg:.1f}"
    assert repr(run) == f"Run(er+gem on rotated-mnist, offline, seed 142: {expected})"
    single = dataclasses.replace(run, summary={**run.summary, "min": None, "avg": 93.57})
    assert repr(single) == "Run(er+gem on rotated-mnist, offline, seed 142: AVG 93.6)"
    bare = dataclasses.replace(run, summary={})
    assert repr(bare) == "Run(er+gem on rotated-mnist, offline, seed 142)"


def test_the_line_about_a_finished_run() -> None:
    def text(*numbers: Any, **options: Any) -> str:
        run = scored_run("er", *numbers, **options)
        return result_text(run.config, run.summary)

    assert text(83.149, 93.55) == "MIN 83.1  AVG 93.5"
    assert text(80, 90, eval_schedule="dense") == "MIN ≤ 80.0  AVG 90.0"
    assert text(None, 93.6, eval_schedule="every:2") == "MIN -  AVG 93.6"
    assert text(9.8, 9.8, diverged=True) == "MIN 9.8  AVG 9.8  diverged"


def test_curves_are_a_frame_of_the_columns() -> None:
    run = example_run()
    assert list(run.curves.columns) == list(run.columns)
    for name, column in run.columns.items():
        assert run.curves[name].to_numpy().tobytes() == column.tobytes()
        assert run.curves[name].dtype == column.dtype


def test_columns_are_read_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    original = module.read_parquet
    monkeypatch.setattr(module, "read_parquet", lambda file: (read.append(file), original(file))[1])
    folder = Store(tmp_path).save(example_run())
    (run,) = Store(tmp_path).runs()
    assert repr(run)
    assert run.min is not None
    assert isinstance(run.columns, StoredColumns)
    assert read == []
    assert len(run.columns["task"]) == 60
    assert run.measures["min"] == pytest.approx(run.min, abs=1e-4)
    assert read == [folder / "curves.parquet"]


def test_a_loaded_run_knows_its_folder_and_can_be_sent_to_a_process(tmp_path: Path) -> None:
    folder = Store(tmp_path).save(example_run())
    run = Run.load(folder)
    assert run.folder == folder
    assert run.name == folder.name == example_run().name
    sent = pickle.loads(pickle.dumps(run))
    assert np.array_equal(sent.columns["task"], run.columns["task"])


def test_slices_and_selections_are_runs(several: Runs) -> None:
    assert isinstance(several[0], Run)
    assert isinstance(several[1:3], Runs)
    assert several[1:3] == [several[1], several[2]]
    assert len(several + several[:2]) == 8
    gem = several.where(method="er + gem(0.5)", seed=152)
    assert isinstance(gem, Runs)
    assert gem == [several[4]]
    assert several.where(lambda run: run.config.seed > 150, method="er") == several[1:3]
    assert several.where(lr=3.0) == []
    with pytest.raises(UserError, match="unknown option 'sed': did you mean 'seed'"):
        several.where(sed=142)


def test_several_runs_are_one_line(several: Runs) -> None:
    assert repr(several) == "Runs(6 runs: er, er+gem on rotated-mnist)"
    assert repr(several[:1]) == "Runs(1 run: er on rotated-mnist)"
    assert repr(Runs()) == "Runs(0 runs)"
    many = Runs(example_run(f"er+clip({k}.5)") for k in range(1, 7))
    assert repr(many).endswith("er+clip(limit=4.5) and 2 more on rotated-mnist)")


def test_measures_are_a_row_per_run(several: Runs) -> None:
    frame = several.measures
    assert list(frame.columns[:4]) == ["benchmark", "mode", "method", "seed"]
    assert list(frame.columns[4:]) == list(several[0].measures)
    assert list(frame["avg"]) == [run.measures["avg"] for run in several]


def test_options_that_tell_runs_apart_are_columns(several: Runs) -> None:
    both = several + Runs([example_run(lr=0.02, momentum=0.5)])
    first = ["benchmark", "mode", "method", "seed", "lr", "momentum"]
    assert list(both.measures.columns[:6]) == first
    curves = both.curves
    assert list(curves.columns[:6]) == first
    assert len(curves) == 7 * 60
    last = curves[curves["lr"] == 0.02]
    assert list(last["iteration"]) == list(range(1, 61))
    assert list(several.curves.columns[:6]) == [*first[:4], "iteration", "task"]


def test_runs_of_different_lengths_share_a_frame() -> None:
    short = curve_run("er", gap_accuracies(20, 2, 1), 142, tasks=2)
    curves = Runs([example_run(), short]).curves
    assert len(curves) == 80
    assert curves["accuracy_3"].isna().sum() >= 20


def test_html_of_a_run_has_its_numbers() -> None:
    run = example_run("er+gem")
    html = run._repr_html_()
    assert f"<td>{run.min:.1f}</td><td>{run.avg:.1f}</td>" in html
    assert "<td>rotated-mnist</td><td>offline</td><td>er+gem</td><td>142</td>" in html
    assert html.count("<img") == 1


def test_html_of_several_runs_has_means_and_standard_errors(several: Runs) -> None:
    html = several._repr_html_()
    values = np.array([run.avg for run in several.where(method="er+gem")])
    expected = f"{values.mean():.1f} ± {values.std(ddof=1) / 3**0.5:.1f}"
    assert re.search(rf"<td>er\+gem</td><td>3</td><td>[^<]* ± [^<]*</td><td>{expected}</td>", html)
    assert html.count("<tr>") == 3
    alone = several[:1]._repr_html_()
    assert "±" not in alone
    assert "<th>MIN</th>" in Runs()._repr_html_()


def test_html_escapes_what_runs_contain() -> None:
    run = example_run()
    evil = dataclasses.replace(run.config, benchmark="<script>alert(1)</script>", profile="a&b")
    changed = dataclasses.replace(run, config=evil)
    for html in (changed._repr_html_(), Runs([run, changed])._repr_html_()):
        assert "<script>" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<td>a&amp;b</td>" in Runs([run, changed])._repr_html_()


def test_html_shows_the_plot_if_there_is_one(
    several: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    for kind, shown in ((Run, several[0]), (Runs, several)):
        monkeypatch.setattr(kind, "plot", lambda self: Figure(figsize=(2, 1)), raising=False)
        assert '<img src="data:image/png;base64,iVBOR' in shown._repr_html_()

        def no_curves(self: object) -> Figure:
            raise UserError("no curves")

        monkeypatch.setattr(kind, "plot", no_curves, raising=False)
        assert "<img" not in shown._repr_html_()
        assert "<table>" in shown._repr_html_()
