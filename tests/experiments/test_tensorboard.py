"""What `--tensorboard` writes, read back with TensorBoard's own reader."""

from __future__ import annotations

import itertools
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark

import twofold
from twofold import Routine
from twofold.experiments import live

reader = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="with TensorBoard (pip install tensorboard)",
)


def test_the_curves_are_all_there(tmp_path):
    run = twofold.run(
        class_benchmark(), "er", batch_size=10, eval_schedule="every:5", tensorboard=tmp_path
    )
    (folder,) = tmp_path.iterdir()
    assert folder.name == run.config.folder_name()
    events = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    written = events.Scalars("accuracy/task 1")
    kept = ~np.isnan(run.columns["accuracy_1"])
    assert [event.step for event in written] == run.columns["iteration"][kept].tolist()
    assert np.allclose([event.value for event in written], run.columns["accuracy_1"][kept])
    assert len(events.Scalars("loss")) == 36


def steps(folder, tag="loss"):
    events = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return [event.step for event in events.Scalars(tag)]


def test_the_curves_grow_while_the_run_is_trained(tmp_path, monkeypatch):
    seen = []

    class Looks(Routine, name="looks"):
        def after_step(self, step):
            if step.iteration == 3:
                seen.append(steps(next(tmp_path.iterdir())))

    monkeypatch.setattr(live, "SEND_EVERY", 0.0)
    short = {"batch_size": 10, "iterations": 4, "tasks": 2}
    twofold.run(class_benchmark(), "er+looks", tensorboard=tmp_path, **short)
    assert seen == [[1, 2], [1, 2, 3, 4, 5, 6]]


def test_a_run_that_continues_or_is_there_already_is_shown_once(tmp_path, monkeypatch):
    # TensorBoard reads files in the order of their names, which begin with a time in seconds.
    seconds = itertools.count(1_700_000_000)
    clock = SimpleNamespace(time=lambda: next(seconds))
    monkeypatch.setattr("tensorboard.summary.writer.event_file_writer.time", clock)

    class Stops(Routine, name="stops"):
        def after_step(self, step):
            if os.environ.get("STOP") and step.task == 2:
                raise KeyboardInterrupt

    board = tmp_path / "board"
    options = {"batch_size": 10, "iterations": 4, "tasks": 2, "tensorboard": board}
    options |= {"out": tmp_path / "out", "checkpoint_every": 0}
    toy = class_benchmark()
    monkeypatch.setenv("STOP", "1")
    with pytest.raises(KeyboardInterrupt):
        twofold.run(toy, "er+stops", **options)
    (folder,) = board.iterdir()
    assert steps(folder) == [1, 2, 3, 4]
    monkeypatch.delenv("STOP")
    twofold.run(toy, "er+stops", **options)
    assert steps(folder) == list(range(1, 9))
    twofold.run(toy, "er+stops", **options)
    assert steps(folder) == list(range(1, 9))
    shutil.rmtree(folder)
    twofold.run(toy, "er+stops", **options)
    assert steps(folder) == list(range(1, 9))
