"""Sinks of running runs: they get every row, in time, and whatever they do, the run is the same."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark

import twofold
from twofold import Routine, Run, UserError
from twofold.experiments import live
from twofold.experiments.config import configure

HELPERS = Path(__file__).parents[1] / "helpers"
SHORT: dict[str, Any] = {"batch_size": 10, "iterations": 4, "tasks": 2}
CALLS = ["init", "log", "finish"]


class Tracked:
    """The calls that a package has recorded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def calls(self, kind: str) -> list[list[Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [call[2:] for call in map(json.loads, lines) if call[1] == kind]

    def steps(self) -> list[int]:
        return [step for _, step, _ in self.calls("log")]


@pytest.fixture(params=["trackio", "wandb"])
def package(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracked:
    """Put a small trackio and wandb in the place of the real ones."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for name in ("trackio", "wandb"):
        shutil.copy(HELPERS / "tracker.py", folder / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, None)  # so that it is forgotten afterwards
        del sys.modules[name]
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("TRACKED", str(tmp_path / "calls"))
    return Tracked(tmp_path / "calls")


def same_curves(one: Run, other: Run) -> bool:
    return one.columns.keys() == other.columns.keys() and all(
        np.array_equal(one.columns[name], other.columns[name], equal_nan=True)
        for name in one.columns
    )


def test_every_value_arrives_once_with_the_options_that_decide_it(
    tracked: Tracked, package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = twofold.run(class_benchmark(), "er", eval_schedule="every:2", live=package, **SHORT)
    assert tracked.steps() == run.columns["iteration"].tolist()
    for name, column in run.columns.items():
        if name in ("iteration", "task"):
            continue
        tag = name.replace("accuracy_", "accuracy/task ")
        sent = [values.get(tag, math.nan) for _, _, values in tracked.calls("log")]
        assert np.array_equal(np.float32(sent), np.float32(column), equal_nan=True), name
    ((project, name, group, options),) = tracked.calls("init")
    assert (project, name, group) == ("twofold", run.config.folder_name(), "er")
    assert (options["batch_size"], options["seed"]) == (10, run.config.seed)
    assert {"device", "plugins"}.isdisjoint(options)  # they tell about this machine
    assert tracked.calls("finish") == [[name]]
    assert capsys.readouterr() == ("", "")  # standard output belongs to the results


def test_a_project_of_your_own(tracked: Tracked) -> None:
    twofold.run(class_benchmark(), "er", live="trackio:gaps: a study", **SHORT)
    assert tracked.calls("init")[0][0] == "gaps: a study"


def test_a_sink_changes_neither_identity_nor_result(tracked: Tracked, tmp_path: Path) -> None:
    toy = class_benchmark()
    plain = twofold.run(toy, "er+gem", out=tmp_path / "plain", **SHORT)
    watched = twofold.run(toy, "er+gem", out=tmp_path / "watched", live="trackio", **SHORT)
    assert watched.config.identity() == plain.config.identity()
    assert same_curves(plain, watched)
    again = twofold.run(toy, "er+gem", out=tmp_path / "plain", live="trackio", **SHORT)
    assert again.folder == plain.folder
    assert len(tracked.calls("init")) == 1  # what is there already does not run


def test_rows_arrive_while_the_run_is_trained(tracked: Tracked, monkeypatch: Any) -> None:
    seen = []

    class Looks(Routine, name="looks"):
        def after_step(self, step: Any) -> None:
            seen.append(len(tracked.steps()))

    monkeypatch.setattr(live, "SEND_EVERY", 0.0)
    twofold.run(class_benchmark(), "er+looks", live="trackio", **SHORT)
    assert seen == list(range(8))  # all rows of the iterations before


@pytest.mark.parametrize("call", CALLS)
def test_a_sink_that_fails_costs_one_line(
    tracked: Tracked, call: str, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = class_benchmark()
    plain = twofold.run(toy, "er", **SHORT)
    monkeypatch.setattr(live, "SEND_EVERY", 0.0)
    monkeypatch.setenv("TRACKER_FAILS", call)
    assert same_curves(twofold.run(toy, "er", live="trackio:gaps", **SHORT), plain)
    why = "ConnectionError: the service is away"
    line = f"twofold: the run goes on without trackio:gaps: {why}\n"
    assert capsys.readouterr() == ("", line)
    assert len(tracked.calls(call)) == 1  # it is not asked again


def test_one_sink_that_fails_leaves_the_others(
    tracked: Tracked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="with TensorBoard (pip install tensorboard)")
    (tmp_path / "file").touch()
    twofold.run(class_benchmark(), "er", tensorboard=tmp_path / "file", live="wandb", **SHORT)
    assert len(tracked.steps()) == 8
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("twofold: the run goes on without tensorboard: ")


def test_a_run_that_stops_is_closed_and_continues_whole(
    tracked: Tracked, tmp_path: Path, monkeypatch: Any
) -> None:
    class Stops(Routine, name="stops"):
        def after_step(self, step: Any) -> None:
            if os.environ.get("STOP") and (step.task, step.iteration) == (2, 2):
                raise KeyboardInterrupt

    options = {**SHORT, "out": tmp_path / "out", "checkpoint_every": 0, "live": "trackio"}
    toy = class_benchmark()
    monkeypatch.setenv("STOP", "1")
    with pytest.raises(KeyboardInterrupt):
        twofold.run(toy, "er+stops", **options)
    assert tracked.steps() == [1, 2, 3, 4, 5]
    assert len(tracked.calls("finish")) == 1
    monkeypatch.delenv("STOP")
    twofold.run(toy, "er+stops", **options)
    assert tracked.steps()[5:] == list(range(1, 9))
    assert [len(tracked.calls(kind)) for kind in ("init", "finish")] == [2, 2]


def test_worker_processes_send_the_rows_of_their_runs(tracked: Tracked, tmp_path: Path) -> None:
    plugin = str(HELPERS / "plugin.py")
    configs = [configure("toy", "er", seed=seed, plugins=[plugin], **SHORT) for seed in (1, 2)]
    runs = twofold.run_all(configs, out=tmp_path / "out", workers=2, live="wandb")
    assert not runs.failures
    for run in runs:
        steps = [step for name, step, _ in tracked.calls("log") if name == run.folder.name]
        assert steps == list(range(1, 9))
    processes = {json.loads(line)[0] for line in tracked.file.read_text().splitlines()}
    assert len(processes) == 2
    assert os.getpid() not in processes


@pytest.mark.parametrize("given", ["mlflow", "trackio:", "wandb: ", ":gaps", ""])
def test_an_unknown_sink_is_one_line(given: str) -> None:
    line = "live must be trackio or wandb, with a project if you like, such as trackio:gaps, not "
    with pytest.raises(UserError, match=f"^{line}{given!r}$"):
        twofold.run(class_benchmark(), "er", live=given)


def test_a_missing_package_is_named_before_training(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    line = rf"^the option live needs {package}: pip install 'twofold\[{package}\]'$"
    with pytest.raises(UserError, match=line):
        twofold.run(class_benchmark(), "er", live=package)


REAL = """
import twofold
from helpers.benchmarks import class_benchmark

run = twofold.run(
    class_benchmark(), "er", batch_size=10, iterations=4, tasks=2, live="trackio:gaps"
)
from trackio.sqlite_storage import SQLiteStorage

(name,) = SQLiteStorage.get_runs("gaps")
assert name == run.config.folder_name(), name
rows = SQLiteStorage.get_logs("gaps", name)
assert [row["step"] for row in rows] == list(range(1, 9)), rows
ends = [row["accuracy/task 1"] for row in rows]
assert ends == run.columns["accuracy_1"].tolist(), ends
"""


def test_the_real_trackio_keeps_the_rows_in_its_database(tmp_path: Path) -> None:
    pytest.importorskip("trackio", reason="with trackio (pip install trackio)")
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path)}  # it is read at the import
    environment["PYTHONPATH"] = os.pathsep.join([*sys.path, str(HELPERS.parent)])
    done = subprocess.run(
        [sys.executable, "-c", REAL], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
