"""`Watch` after an interruption: curves continue where they end, or begin anew."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.watching import network, python, train, watched
from torch import nn

import twofold
from twofold.experiments import checkpoints

KILLED = """
import os, time, torch
import helpers.watching as t
torch.set_num_threads(1)
watch = t.watched(out={out!r}, checkpoint_every=0.0, schedule="every:3")

class Slow:
    task = watch.task
    steps = 0
    def __call__(self, model):
        watch(model)
        Slow.steps += 1
        torch.save({{"net": model.state_dict(), "steps": Slow.steps}}, {state!r} + ".part")
        os.replace({state!r} + ".part", {state!r})
        if Slow.steps == 13:
            print("interrupt me", flush=True)
            time.sleep(100)

t.train(t.network(), Slow())
"""


def interrupted(folder: Path) -> None:
    """Kill a run in the fifth iteration of its second task."""
    script = folder / "script.py"
    script.write_text(KILLED.format(out=str(folder / "runs"), state=str(folder / "s")))
    process = python(script)
    assert process.stdout is not None
    assert process.stdout.readline() == "interrupt me\n", process.communicate()
    with pytest.raises(twofold.UserError, match="is being watched already: give this run"):
        watched(out=folder / "runs", schedule="every:3")
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_it_survives_a_kill(tmp_path):
    """Continued within a task, the run is the same as without an interruption."""
    whole = watched(schedule="every:3")
    train(network(), whole)
    expected = whole.finish()
    interrupted(tmp_path)
    store = tmp_path / "runs"
    assert len(twofold.Store(store).runs()) == 0
    watch = watched(out=store, schedule="every:3", resume=True)
    assert watch.position == (1, 5)
    with pytest.raises(twofold.UserError, match="end after iteration 5 of it, and the loop"):
        watch.task(1, done=6)

    class From:  # a loop that repeats what it did: what was recorded before is not recorded again
        seen = 0

        def task(self, task: int) -> None:
            if task == 1:
                watch.task(1, done=4)

        def __call__(self, model: nn.Module) -> None:
            From.seen += 1
            if From.seen > 12:
                watch(model)

    train(network(), From())
    run = watch.finish()
    assert np.array_equal(run.accuracy, expected.accuracy, equal_nan=True)
    assert run.summary["accuracy_after_task"] == expected.summary["accuracy_after_task"]
    assert run.measures == expected.measures
    assert not list((store / ".work").iterdir())


def test_a_loop_may_begin_anew(tmp_path):
    interrupted(tmp_path)
    watch = watched(out=tmp_path / "runs", schedule="every:3", resume=True)
    net = network()
    train(net, watch)
    whole = watched(schedule="every:3")
    train(network(), whole)
    assert np.array_equal(watch.finish().accuracy, whole.finish().accuracy, equal_nan=True)


def test_without_resume_an_interrupted_run_begins_anew(tmp_path):
    first = watched(out=tmp_path)
    train(network(), first, tasks=1)
    first.close()
    second = watched(out=tmp_path)
    assert second.position == (-1, 0)
    train(network(), second)
    assert len(second.finish().columns["task"]) == 16


@pytest.mark.parametrize("tasks", [0, 1, 2])
def test_a_kill_right_after_a_switch_costs_nothing(tasks, tmp_path, capsys):
    watch = watched(out=tmp_path)
    train(network(), watch, tasks=tasks, steps=3)
    if tasks < 2:
        watch.task(tasks)
    else:
        watch._end_task()  # as `finish` does, before it saves the run
    watch.close()
    second = watched(out=tmp_path, resume=True)
    assert second.position == (min(tasks, 1), 0 if tasks < 2 else 3)
    assert capsys.readouterr().err == ""
    for task in range(tasks, 2):
        second.task(task)
        second(network())
    assert len(second.finish().columns["task"]) == 3 * tasks + 2 - tasks


@pytest.mark.parametrize("done", [-1, -5, 1.5, "2", None, True, float("nan")])
def test_the_iterations_that_a_loop_has_done_are_a_whole_number(done, tmp_path):
    watch = watched(out=tmp_path)
    train(network(), watch, tasks=1, steps=3)
    watch.close()
    second = watched(out=tmp_path, resume=True)
    with pytest.raises(twofold.UserError, match="done must be"):
        second.task(0, done=done)


def test_a_place_that_the_curves_do_not_reach_is_refused(tmp_path):
    watch = watched(out=tmp_path)
    train(network(), watch, tasks=1, steps=3)
    watch.close()
    second = watched(out=tmp_path, resume=True)
    with pytest.raises(twofold.UserError, match="curves of task 0 end after iteration 3 of it"):
        second.task(1)
    second.task(0, done=3)
    with pytest.raises(twofold.UserError, match="no iteration of task 0 was watched"):
        second.finish()


def test_curves_of_a_different_run_are_not_continued(tmp_path, capsys):
    places = []
    for seed in (1, 2):
        watch = watched(out=tmp_path, seed=seed)
        watch.task(0)
        watch(network())
        watch.close()
        places.append(watch._work.checkpoint)
    places[0].write_bytes(places[1].read_bytes())
    second = watched(out=tmp_path, seed=1, resume=True)
    assert second.position == (-1, 0)
    assert "begins anew: its checkpoint belongs to a different run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "entries",
    [
        *({name: "x"} for name in ("task", "n", "ended", "curves", "ends", "elapsed", "raw")),
        *({"task": task} for task in (-5, 2, 99)),
        *({"n": n} for n in (-1, 10**9)),
        *({"curves": curves} for curves in (None, {}, {"task": "x"}, {"task": np.ones(3)})),
        *({"n": n} for n in (0, 2, True)),
        *({"ends": ends} for ends in ({}, {"evaluated": ["x"], "raw": []})),
        *({"ends": {"evaluated": ends, "raw": []}} for ends in ([[50.0]], [[50.0, 60.0]], [[]])),
        {"ends": {"evaluated": [], "raw": [[50.0]]}},
        {"ended": True},
        {"elapsed": float("nan")},
        {"evaluation": []},
    ],
)
def test_a_forged_checkpoint_is_left(entries, tmp_path, capsys):
    """Its digest and its run are right."""
    begins_anew(lambda state: {**state, **entries}, tmp_path, capsys)


@pytest.mark.parametrize("name", [3, "accuracy_9", "raw_accuracy_9"])
def test_so_is_one_with_odd_columns(name, tmp_path, capsys):
    def forged(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "curves": {**state["curves"], name: np.zeros(3, np.float32)}}

    begins_anew(forged, tmp_path, capsys)


def begins_anew(
    forged: Callable[[dict[str, Any]], dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = watched(out=tmp_path)
    watch.task(0)
    for _ in range(3):
        watch(network())
    watch.close()
    state = forged(watch._state())
    checkpoints.write(watch._work.checkpoint, state, watch.config.identity())
    second = watched(out=tmp_path, resume=True)
    assert second.position == (-1, 0)
    assert "begins anew: its checkpoint does not fit" in capsys.readouterr().err
    train(network(), second)
    assert len(second.finish().columns["task"]) == 16
