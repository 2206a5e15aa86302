"""`Watch`: any model in any loop, without a trace; runs like any other; bad input."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
import torch
from helpers.watching import TESTS, axes_of, images, measured, network, python, train, watched
from torch import nn

import twofold
from twofold.cli import main

# Any loop, any model


def test_reinforcement_learning_with_evaluations_of_different_cost():
    """A reward is the measure, there is no data, and no measure is called more than needed."""
    goals, calls = {"left": -2.0, "right": 3.0}, {"left": 0, "right": 0}

    def reward(name: str, episodes: int) -> Any:
        def play(policy: nn.Module) -> float:
            calls[name] += 1
            assert not policy.training
            noise = torch.randn(episodes) * 0.01 + np.random.rand() * 0.01
            return float(-((policy(torch.ones(1)) - goals[name]).abs() + noise).mean())

        return play

    def run() -> Any:
        torch.manual_seed(0)
        policy = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        tests = {"left": reward("left", 2), "right": reward("right", 500)}
        watch = watched(tests, schedule="every:4", measure="reward")
        for task, goal in enumerate(goals.values()):
            watch.task(task)
            for _ in range(10):
                optimizer.zero_grad()
                (policy(torch.ones(1) + 0.01 * torch.randn(1)) - goal).square().sum().backward()
                optimizer.step()
                watch(policy)
        return watch.finish(), policy.weight.item()

    first, weight = run()
    assert calls == {
        "left": 6,
        "right": 3,
    }  # after 4, 8 and 10 iterations: the last one counts once
    second, same_weight = run()
    assert weight == same_weight
    assert np.array_equal(first.accuracy, second.accuracy, equal_nan=True)
    assert first.gaps[0].depth > 2
    assert first.min < -2
    assert first.measures["new_speed"] is None  # 90% of a negative reward means nothing
    assert {axes.get_ylabel() for axes in axes_of(first.plot())} == {"task 1 reward", ""}
    assert first.config.eval_schedule == "every:4"


def test_lower_may_be_better():
    losses = iter([3.0, 1.0, 6.0, 2.0])
    watch = watched({"a": lambda model: next(losses), "b": lambda model: 1}, higher_is_better=False)
    for task, steps in enumerate((2, 2)):
        watch.task(task)
        for _ in range(steps):
            watch("any object")
    run = watch.finish()
    assert run.accuracy[:, 0].tolist() == [-3, -1, -6, -2]
    assert run.min == -6
    assert run.gaps[0].depth == 5
    assert run.summary["higher_is_better"] is False
    assert {axes.get_ylabel() for axes in axes_of(run.plot())} == {"task 1 −value", ""}


def test_an_average_of_the_weights_is_evaluated_beside_them(tmp_path):
    net = network()
    average = torch.optim.swa_utils.AveragedModel(
        net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    watch = watched(out=tmp_path)

    class Both:
        task = staticmethod(watch.task)

        def __call__(self, model: nn.Module) -> None:
            average.update_parameters(model)
            watch(average, raw=model)

    train(net, Both())
    run = watch.finish()
    assert run.raw_measures is not None
    assert run.columns["raw_accuracy_1"][-1] == pytest.approx(measured(net, *TESTS["0"]))
    assert run.columns["accuracy_1"][-1] == pytest.approx(measured(average, *TESTS["0"]))
    other = watched(method="raw is forgotten")
    other.task(0)
    other(average, raw=net)
    with pytest.raises(twofold.UserError, match="raw at every call"):
        other(average)


DISTRIBUTED = """
import sys, torch
from torch import distributed, nn
import helpers.watching as t
rank = int(sys.argv[1])
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method="file://{folder}/meet", rank=rank, world_size=2)
watch = t.watched(out="{folder}/runs")
ends = []
for watcher in (None, watch):  # the gradients of both processes are averaged in either case
    net = nn.parallel.DistributedDataParallel(t.network())
    t.train(net, watcher, steps=3)
    ends.append([tensor.tolist() for tensor in net.module.state_dict().values()])
run = watch.finish()
print("finished", rank, run)
print("same", ends[0] == ends[1])
distributed.destroy_process_group()
"""


def test_in_distributed_training_rank_0_evaluates(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(DISTRIBUTED.format(folder=tmp_path))
    both = [python(script, rank) for rank in (0, 1)]
    outs = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert "finished 0 Run(my idea on mine" in outs[0][0]
    assert "finished 1 None" in outs[1][0]
    assert all("same True" in out for out, _ in outs)
    assert len(twofold.Store(tmp_path / "runs").runs()) == 1


def test_fewer_tasks_than_test_sets_are_a_shorter_run():
    watch = watched()
    train(network(), watch, tasks=1)
    run = watch.finish()
    assert run.config.tasks == 1
    assert run.min is None
    assert "accuracy_2" not in run.columns


def test_what_is_logged_is_in_the_curves():
    watch = watched()
    watch.task(0)
    for step in range(3):
        watch.log(loss=torch.tensor(float(step), requires_grad=True), projected=True, mine=step)
        watch(network())
    run = watch.finish()
    assert run.columns["loss"].tolist() == [0, 1, 2]
    assert run.columns["mine"].tolist() == [0, 1, 2]
    assert run.columns["projected"].all()
    for name, value in {"task": 1, "lowest_1": 1, "mine": "high", "other": None}.items():
        with pytest.raises(twofold.UserError, match=f"can't log {name!r}: log a number"):
            watched().log(**{name: value})


# Bad input: one line each, and nothing is lost


def test_a_task_comes_before_the_first_call():
    watch = watched()
    with pytest.raises(twofold.UserError, match=r"call watch.task\(0\) before the first"):
        watch(network())
    with pytest.raises(twofold.UserError, match="nothing was watched"):
        watch.finish()
    with pytest.raises(twofold.UserError, match="the first task is task 0, not task 1"):
        watch.task(1)
    with pytest.raises(twofold.UserError, match="there is no task 7"):
        watch.task(7)
    watch.task("0")
    with pytest.raises(twofold.UserError, match="no iteration of task 0 was watched"):
        watch.task(1)
    watch(network())
    watch.task("80")
    with pytest.raises(twofold.UserError, match="after task 1 comes task 2, not task 0"):
        watch.task(0)
    watch(network())
    assert watch.finish().config.method == "my idea"


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 1e301, 10**400, "high", None, torch.ones(2), True]
)
def test_a_measure_that_is_no_number_is_named_and_the_curves_are_kept(tmp_path, value):
    values = iter([1.0, 2.0, value])
    watch = watched({"reward": lambda model: next(values)}, out=tmp_path)
    watch.task(0)
    watch("model")
    watch("model")
    with pytest.raises(
        twofold.UserError, match=r"'reward'.*after iteration 3 of task 0; the curves"
    ):
        watch("model")
    watch.close()
    second = watched({"reward": lambda model: 4.0}, out=tmp_path, resume=True)
    assert second.position == (0, 3)
    second.task(0, done=2)
    second("model")
    assert second.finish().accuracy[:, 0].tolist() == [1, 2, 4]


def test_an_error_in_a_measure_is_the_users_and_the_curves_are_kept(tmp_path):
    def broken(model: Any) -> float:
        raise KeyError("mine")

    watch = watched({"reward": broken}, out=tmp_path)
    watch.task(0)
    with pytest.raises(KeyError, match="mine"):
        watch("model")
    assert (watch._work.folder / "checkpoint.pt").exists()


def test_whatever_fails_at_the_end_of_a_task_loses_no_curves(tmp_path):
    net, watch = network(), watched(out=tmp_path)
    watch.task(0)
    watch(net)
    watch(net)
    net[5] = nn.Linear(64, 8)
    line = r"the model changed its size.*after iteration 2 of task 0; the curves so far are kept"
    with pytest.raises(twofold.UserError, match=line):
        watch.task(1)
    watch._claim.close()  # the process ends
    assert watched(out=tmp_path, resume=True).position == (0, 2)


def test_routines_that_are_none_are_named():
    watch = watched()
    watch.task(0)
    with pytest.raises(twofold.UserError, match="how must be a How, not 'gem'"):
        watch(network(), how="gem")


def test_a_run_is_finished_once(tmp_path):
    watch = watched(out=tmp_path)
    train(network(), watch)
    run = watch.finish()
    for call in (watch.finish, lambda: watch(network()), lambda: watch.task(0)):
        with pytest.raises(twofold.UserError, match="'my idea' on 'mine' with seed 0 is finished"):
            call()
    assert len(twofold.Store(tmp_path).runs()) == 1
    with pytest.raises(twofold.UserError, match=r"is complete: give this run .* `twofold runs rem"):
        watched(out=tmp_path)
    assert main(["runs", "remove", run.summary["identity"], "--runs", str(tmp_path)]) == 0
    watched(out=tmp_path).close()


def test_two_watchers_with_one_name_and_seed_are_refused(tmp_path):
    first = watched(out=tmp_path)
    with pytest.raises(twofold.UserError, match="'my idea' on 'mine' with seed 0 is being watched"):
        watched(out=tmp_path)
    watched(out=tmp_path, seed=1).close()
    train(network(), first)
    assert first.finish().folder is not None


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"settings": {"seed": 3}}, "a setting can't be called 'seed'"),
        ({"settings": {"lr": "fast"}}, "lr must be a finite number"),
        ({"settings": {"net": nn.Linear(1, 1)}}, "setting 'net' must be a number, text"),
        ({"schedule": "sometimes"}, "eval schedule must be"),
        ({"size": 0}, "eval size must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"method": ""}, "method must be a name"),
        *(
            ({"measure": measure}, "measure must be a word")
            for measure in ("", "\x1b[1m", "m" * 5000)
        ),
        *(({"tests": {n: images(9)}}, "must be printable text") for n in ("\x1b[1m", "n" * 5000)),
        ({"higher_is_better": False}, "a higher accuracy is better"),
        ({"checkpoint_every": "often"}, "checkpoint every must be a finite number, not 'often'"),
        *(({"out": out}, "out must be a path") for out in ("\0", 3)),
    ],
)
def test_wrong_arguments_are_refused(given, line):
    with pytest.raises(twofold.UserError, match=re.escape(line)):
        watched(**given)


# Cost


def test_a_call_that_evaluates_nothing_costs_next_to_nothing():
    """Under 50 microseconds on a busy machine; a training step takes more than ten times that."""
    net = network()
    watch = watched(schedule="every:1000000")
    watch.task(0)
    watch(net)
    start = time.perf_counter()
    for _ in range(2000):
        watch(net)
    assert (time.perf_counter() - start) / 2000 < 200e-6
