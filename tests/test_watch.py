"""`Watch`: any model in any loop, without a trace; runs like any other; bad input."""

from __future__ import annotations

import copy
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

import twofold
from twofold.cli import main
from twofold.compare.groups import groups
from twofold.evaluation.predictors import Confirmed, Plain
from twofold.watch import Watch

ROOT = Path(__file__).parent.parent
NAMES: dict[str, Any] = {"benchmark": "mine", "method": "my idea", "seed": 0}


def images(task: int, count: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(task)
    x = torch.randn(count, 1, 6, 6, generator=generator)
    return x, (x[:, 0, 0, 0] > 0).long() + 2 * (x[:, 0, 1, 1] > 0).long()


TESTS = {"0": images(10), "80": images(11)}


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(64, 4),
    )


def train(net: nn.Module, watch: Any, steps: int = 8, tasks: int = 2) -> None:
    """A loop that draws from all generators, and has gradients when it calls `watch`."""
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for task in range(tasks):
        x, y = images(task)
        if watch is not None:
            watch.task(task)
        for _ in range(steps):
            rows = torch.randint(len(y), (10,))
            noise = random.random() * 0.1 + 0.1 * np.random.rand()
            optimizer.zero_grad()
            cross_entropy(net(x[rows] + noise), y[rows]).backward()
            optimizer.step()
            if watch is not None:
                watch(net)


def everything(net: nn.Module) -> list[Any]:
    """All that a call must leave as it was, as values that can be compared."""
    tensors = [*net.state_dict().values(), *(p.grad for p in net.parameters())]
    return [
        *(None if t is None else t.detach().clone().numpy().tobytes() for t in tensors),
        [m.training for m in net.modules()],
        [p.requires_grad for p in net.parameters()],
        torch.get_rng_state().numpy().tobytes(),
        [
            part.tobytes() if isinstance(part, np.ndarray) else part
            for part in np.random.get_state()
        ],
        random.getstate(),
    ]


def watched(tests: Any = TESTS, **given: Any) -> Watch:
    return Watch(tests, **{**NAMES, **given})


def measured(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """The accuracy as anybody would write it."""
    copied = copy.deepcopy(net).eval()
    with torch.no_grad():
        return float((copied(x).argmax(1) == y).float().mean() * 100)


# Without a trace


@pytest.mark.parametrize("tests", [TESTS, {"0": TESTS["0"], "80": lambda model: random.random()}])
@pytest.mark.parametrize("schedule", ["every", "dense:3:2"])
def test_a_loop_is_bitwise_the_same_with_and_without_it(tests, schedule, tmp_path):
    ends = []
    for watch in (None, watched(tests, schedule=schedule, size=20, out=tmp_path)):
        net = network()
        train(net, watch)
        if watch is not None:
            watch.finish()
        ends.append(everything(net))
    assert ends[0] == ends[1]


def test_a_call_leaves_modes_gradients_buffers_and_random_states_as_they_are():
    class Restless(nn.Module):
        """Draws in evaluation, too, and counts its calls in a buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = network()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self.inner(x) + 1e-6 * torch.rand(4)

        def train(self, mode: bool = True) -> nn.Module:
            raise AssertionError("it may do anything, such as merging weights")

    def sharpness(model: nn.Module) -> float:
        with torch.enable_grad():
            loss = cross_entropy(model.inner(TESTS["0"][0]), TESTS["0"][1])
            loss.backward()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        np.random.rand()
        random.random()
        return float(model.inner[0].weight.grad.norm())

    net = Restless()
    net.inner[1].eval()  # a frozen batch norm
    net.inner[0].weight.requires_grad_(False)
    net.inner[5].weight.grad = torch.ones_like(net.inner[5].weight)
    watch = watched({"0": TESTS["0"], "sharpness": sharpness})
    watch.task(0)
    watch(net)
    watch.task(1)
    net.inner[0].weight.requires_grad_(True)
    before = everything(net)
    gradient = net.inner[5].weight.grad
    watch(net)
    assert everything(net) == before
    assert net.inner[5].weight.grad is gradient
    assert watch.finish().accuracy[-1, 1] > 0


def test_accuracies_are_those_of_a_plain_evaluation():
    """On a network whose batch norm is folded: the copy is used, and agrees."""
    net, found = network(), []
    watch = watched(schedule="every", size=1000)

    class Both:
        def task(self, task: int) -> None:
            watch.task(task)

        def __call__(self, model: nn.Module) -> None:
            watch(model)
            learned = len(found) // 8 + 1
            both = [measured(model, *TESTS[name]) for name in TESTS]
            found.append(both[:learned] + [np.nan] * (2 - learned))

    train(net, Both())
    predict = watch._evaluator._known["evaluated"].predict
    assert isinstance(predict, Confirmed)
    assert predict.agrees
    run = watch.finish()
    assert np.array_equal(run.accuracy, np.array(found, np.float32), equal_nan=True)
    assert run.summary["accuracy_after_task"][-1] == pytest.approx(found[-1])


def test_some_examples_are_drawn_by_the_seed_and_all_count_at_the_end():
    net = network()
    runs = []
    for seed in (0, 0, 1):
        watch = watched({"0": images(10, 400)}, size=50, seed=seed)
        watch.task(0)
        watch(net)
        runs.append(watch.finish())
    assert runs[0].avg == runs[2].avg == pytest.approx(measured(net, *images(10, 400)))
    assert runs[0].accuracy[0, 0] == runs[1].accuracy[0, 0]


class Images(Dataset):
    def __len__(self) -> int:
        return 60

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        x, y = TESTS["0"]
        return x[row], int(y[row])


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter([Images()[row] for row in range(60)])


@pytest.mark.parametrize(
    "test",
    [
        TESTS["0"],
        TensorDataset(*TESTS["0"]),
        Images(),
        DataLoader(Images(), batch_size=7, shuffle=True, drop_last=True),
        DataLoader(TensorDataset(*TESTS["0"]), batch_size=7),
        DataLoader(Stream(), batch_size=7),
    ],
)
def test_test_sets_of_all_kinds_are_the_same(test):
    net = network()
    watch = watched({"0": test}, size=25)
    watch.task(0)
    watch(net)
    run = watch.finish()
    expected = watched({"0": TESTS["0"]}, size=25)
    expected.task(0)
    expected(net)
    assert np.array_equal(run.accuracy, expected.finish().accuracy)
    assert run.avg == pytest.approx(measured(net, *TESTS["0"]))


def test_a_loaders_sampler_counts():
    x, y = TESTS["0"]
    rows = [3, 5, 8, 13, 21]
    loader = DataLoader(Images(), sampler=SubsetRandomSampler(rows))
    net, watch = network(), watched({"0": loader})
    watch.task(0)
    watch(net)
    assert watch.finish().avg == pytest.approx(measured(net, x[rows], y[rows]))


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
    again, same_weight = run()
    assert weight == same_weight
    assert np.array_equal(first.accuracy, again.accuracy, equal_nan=True)
    assert first.gaps[0].depth > 2
    assert first.min < -2
    assert first.measures["new_speed"] is None  # 90% of a negative reward means nothing
    assert {axes.get_ylabel() for axes in axes_of(first.plot())} == {"task 1 reward", ""}
    assert first.config.eval_schedule == "every:4"


def axes_of(figure: Any) -> list[Any]:
    return [axes for part in figure.subfigs for axes in part.axes]


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


def test_a_compiled_model_is_evaluated_by_its_original_module():
    calls = []

    def backend(graph: Any, inputs: Any) -> Any:
        calls.append(graph)
        return graph.forward

    plain, net = network(), network()
    compiled = torch.compile(net, backend=backend)
    in_place = network()
    in_place.compile(backend=backend)
    runs = []
    for model in (plain, compiled, in_place):
        watch = watched()
        watch.task(0)
        watch(model)
        runs.append(watch.finish())
    assert not calls
    assert runs[0].avg == runs[1].avg == runs[2].avg


def test_under_autocast_the_model_is_evaluated_in_its_precision_and_trains_the_same():
    ends = []
    for watch in (None, watched()):
        net = network()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        x, y = TESTS["0"]
        if watch is not None:
            watch.task(0)
        with torch.autocast("cpu", torch.bfloat16):
            for _ in range(3):
                if watch is not None:
                    watch(net)  # before the weights are cast: no cast of it may stay
                optimizer.zero_grad()
                cross_entropy(net(x), y).backward()
                optimizer.step()
        ends.append([value.numpy().tobytes() for value in net.state_dict().values()])
    assert ends[0] == ends[1]
    assert watch is not None
    with torch.autocast("cpu", torch.bfloat16):
        assert isinstance(
            watch._evaluator._predictor("evaluated", net, watch._evaluator._sets), Plain
        )


def test_a_model_that_changes_its_head_is_evaluated_with_that_head():
    """Its weights do not show it: the folded copy has to be compared with the model."""

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = network()[:5]
            self.heads = nn.ModuleList([nn.Linear(64, 4) for _ in range(2)])
            self.head = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.heads[self.head](self.body(x))

    net = Heads()
    watch = watched({"0": images(10, 300)})
    watch.task(0)
    found = []
    for head in (0, 1, 0):
        net.head = head
        watch(net)
        found.append(measured(net, *images(10, 300)))
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(found)


def test_a_model_that_is_a_new_object_each_time_is_evaluated_as_it_is():
    watch = watched()
    watch.task(0)
    nets = [network(seed) for seed in range(7)]
    for net in nets:
        watch(net)
    assert isinstance(watch._evaluator._known["evaluated"].predict, Plain)
    expected = [measured(net, *TESTS["0"]) for net in nets]
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(expected)


def test_hooks_are_called_once_per_evaluation_as_in_a_plain_loop():
    net, calls = network(), []
    net[0].register_forward_hook(lambda *args: calls.append(1))
    watch = watched()
    watch.task(0)
    watch(net)
    assert len(calls) == 1


def test_a_device_without_memory_gets_fewer_examples_at_once():
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(36, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if len(x) > 300:
                raise torch.OutOfMemoryError("out of memory")
            return self.layer(x.flatten(1))

    net, watch = Small(), watched({"0": images(10, 1000)})
    watch.task(0)
    watch(net)
    x, y = images(10, 1000)
    with torch.no_grad():
        expected = float((net.layer(x.flatten(1)).argmax(1) == y).float().mean() * 100)
    assert watch.finish().avg == pytest.approx(expected)


DISTRIBUTED = """
import sys, torch
from torch import distributed, nn
sys.path.insert(0, {tests!r})
import test_watch as t
rank = int(sys.argv[1])
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method="file://{folder}/meet", rank=rank, world_size=2)
net = nn.parallel.DistributedDataParallel(t.network())
watch = t.watched(out="{folder}/runs")
t.train(net, watch, steps=3)
run = watch.finish()
print("finished", rank, run)
distributed.destroy_process_group()
"""


def python(*words: Any) -> subprocess.Popen[str]:
    """A process that finds this package."""
    path = os.pathsep.join([str(Path(twofold.__file__).parents[1]), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_in_distributed_training_rank_0_evaluates(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(DISTRIBUTED.format(tests=str(ROOT / "tests"), folder=tmp_path))
    both = [python(script, rank) for rank in (0, 1)]
    outs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert "finished 0 Run(my idea on mine" in outs[0][0]
    assert "finished 1 None" in outs[1][0]
    assert len(twofold.Store(tmp_path / "runs").runs()) == 1


# A run like any other


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """Runs of four methods that are not twofold's, or only by name, with three seeds."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        for method in ("my idea (v2)", "replay", "replay+trick", "er+gem(0.5)"):
            settings = {"lr": 0.1, "width": 16, "augmented": True}
            watch = watched(out=folder, method=method, seed=seed, settings=settings, size=50)
            train(network(seed + len(method)), watch, steps=4)
            watch.finish()
    watch = watched(out=folder, method="replay", settings={"lr": 0.1, "width": 32}, size=50)
    train(network(), watch, steps=4)
    watch.finish()
    return folder


def test_it_groups_over_seeds_and_its_settings_are_columns_and_filters(store, capsys):
    runs = twofold.Store(store).runs()
    assert len(runs) == 13
    assert sorted(len(group.runs) for group in groups(runs)) == [1, 3, 3, 3, 3]
    assert len(runs.where(width=32)) == 1
    assert len(runs.where(lr=0.1, augmented=True)) == 12
    assert set(runs.frame()["width"]) == {16, 32}
    assert {"width", "augmented"} <= {*runs.measures.columns}
    assert len(runs.where(method="er+gem")) == 3  # one method, however it is written
    with pytest.raises(twofold.UserError, match="did you mean 'width'"):
        runs.where(widht=1)
    assert main(["runs", "--runs", str(store), "--set", "width=32"]) == 0
    out = capsys.readouterr().out
    assert "replay" in out
    assert "my idea" not in out
    assert main(["runs", "--runs", str(store), "--set", "width=64"]) == 2
    assert "unknown width '64'" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["md", "csv", "json", "latex", "html"])
def test_the_table_of_runs_shows_it(store, capsys, format):
    words = ["table", "runs", "--runs", str(store), "--metrics", "min,gap_depth"]
    assert main([*words, "--format", format]) == 0
    out = capsys.readouterr().out
    for text in ("my idea (v2)", "replay+trick", "width", "32"):
        assert text in out


def test_verdicts_compare_a_method_of_ones_own_with_its_plain_one(store, capsys):
    assert main(["verdicts", "--runs", str(store)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| replay +\| trick +\| +3 ", out)
    assert "er+gem on mine offline (LR 0.1, BS –, profile paper) has no plain er" in out


def test_figures_and_the_page_show_it(store, tmp_path, capsys):
    words = ["figure", "compare", "mine", "--runs", str(store), "-o", str(tmp_path / "a.png")]
    assert main(words) == 2
    assert "replay's runs differ in width (16, 32): choose" in capsys.readouterr().err
    assert main([*words, "--set", "width=16"]) == 0
    assert "my idea (v2) (3)" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["report", str(store), "-o", str(page)]) == 0
    assert "my idea (v2)" in page.read_text()
    assert main(["departures", "--runs", str(store)]) in (0, 2)
    assert main(["runs", "show", "--runs", str(store), "--seed", "2"]) == 0
    assert main(["runs", "verify", "--runs", str(store)]) == 0
    assert main(["runs", "export", "--runs", str(store), "--to", str(tmp_path / "a")]) == 0
    archived = twofold.Store(tmp_path / "a").runs()
    assert {run.config.identity() for run in archived} == {
        run.summary["identity"] for run in twofold.Store(store).runs()
    }


def test_settings_decide_the_identity_and_runs_without_them_keep_theirs():
    one, same, other = (
        watched(settings=own).config.identity()
        for own in ({"a": 1, "b": "x"}, {"b": "x", "a": 1}, {"a": 2, "b": "x"})
    )
    assert one == same != other
    config = twofold.configure("rotated-mnist", "er")
    assert "settings" not in config.decisive()
    assert watched({"0": TESTS["80"]}).config.identity() != watched().config.identity()


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
    with pytest.raises(twofold.UserError, match="can't log 'task'"):
        watched().log(task=1)


# Interruptions

KILLED = """
import sys, time, torch
sys.path.insert(0, {tests!r})
import test_watch as t
torch.set_num_threads(1)
watch = t.watched(out={out!r}, checkpoint_every=0.0, schedule="every:3")

class Slow:
    task = watch.task
    steps = 0
    def __call__(self, model):
        watch(model)
        Slow.steps += 1
        torch.save({{"net": model.state_dict(), "steps": Slow.steps}}, {state!r} + ".part")
        import os; os.replace({state!r} + ".part", {state!r})
        if Slow.steps == 13:
            print("there", flush=True)
            time.sleep(100)

t.train(t.network(), Slow())
"""


def interrupted(folder: Path) -> None:
    """Kill a run in the fifth iteration of its second task."""
    script = folder / "script.py"
    given = {"tests": str(ROOT / "tests"), "out": str(folder / "runs"), "state": str(folder / "s")}
    script.write_text(KILLED.format(**given))
    process = python(script)
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n", process.communicate()
    with pytest.raises(twofold.UserError, match="is being watched already: give this run"):
        watched(out=folder / "runs", schedule="every:3")
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_it_survives_a_kill(tmp_path):
    """Continued at the start of the task, and within it: the run is as if nothing had happened."""
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


def test_a_place_that_the_curves_do_not_reach_is_refused(tmp_path):
    watch = watched(out=tmp_path)
    train(network(), watch, tasks=1, steps=3)
    watch.close()
    again = watched(out=tmp_path, resume=True)
    with pytest.raises(twofold.UserError, match="curves of task 0 end after iteration 3 of it"):
        again.task(1)
    again.task(0, done=3)
    with pytest.raises(twofold.UserError, match="no iteration of task 0 was watched"):
        again.finish()


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
    ("tests", "line"),
    [
        ({"0": images(0), "80": (torch.randn(5, 36), torch.zeros(5).long())}, "of shape [36]"),
        ({"0": (torch.randn(5, 2), torch.zeros(4).long())}, "has 5 inputs and 4 labels"),
        ({"0": (torch.randn(5, 2), torch.zeros(5))}, "labels must be one whole number"),
        ({"0": (torch.randn(0, 2), torch.zeros(0).long())}, "has no examples"),
        ({"0": TensorDataset(torch.zeros(3))}, "an input and a label"),
        ({"0": 3}, "must be two tensors, a Dataset, a DataLoader or a function"),
        ({}, "test sets are a mapping by name"),
    ],
)
def test_a_wrong_test_set_is_refused(tests, line):
    with pytest.raises(twofold.UserError, match=re.escape(line)) as raised:
        watched(tests)
    assert "\n" not in str(raised.value)


def test_a_test_set_that_does_not_fit_the_model_is_refused():
    watch = watched({"0": (torch.randn(9, 3), torch.zeros(9).long())})
    watch.task(0)
    with pytest.raises(twofold.UserError, match=r"test set '0', with inputs of shape \[9, 3\]"):
        watch(nn.Linear(5, 2))
    with pytest.raises(twofold.UserError, match="a row of scores per example"):
        watch(nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2))))
    with pytest.raises(twofold.UserError, match=r"needs a torch.nn.Module, not str"):
        watch("a model")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "high", None, torch.ones(2), True])
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
    again = watched({"reward": lambda model: 4.0}, out=tmp_path, resume=True)
    assert again.position == (0, 3)
    again.task(0, done=2)
    again("model")
    assert again.finish().accuracy[:, 0].tolist() == [1, 2, 4]


def test_an_error_in_a_measure_is_the_users_and_the_curves_are_kept(tmp_path):
    def broken(model: Any) -> float:
        raise KeyError("mine")

    watch = watched({"reward": broken}, out=tmp_path)
    watch.task(0)
    with pytest.raises(KeyError, match="mine"):
        watch("model")
    assert (watch._work.folder / "checkpoint.pt").exists()


def test_curves_of_a_different_run_are_not_continued(tmp_path, capsys):
    places = []
    for seed in (1, 2):
        watch = watched(out=tmp_path, seed=seed)
        watch.task(0)
        watch(network())
        watch.close()
        places.append(watch._work.checkpoint)
    places[0].write_bytes(places[1].read_bytes())
    again = watched(out=tmp_path, seed=1, resume=True)
    assert again.position == (-1, 0)
    assert "begins anew: its checkpoint belongs to a different run" in capsys.readouterr().err


def test_a_model_that_changes_its_size_is_refused_and_a_function_takes_it():
    net = network()
    watch = watched()
    watch.task(0)
    watch(net)
    net[5] = nn.Linear(64, 8)
    with pytest.raises(twofold.UserError, match=r"'5.weight' was of shape \[4, 64\] and is \[8"):
        watch(net)
    function = watched({"0": lambda model: measured(model, *TESTS["0"])})
    function.task(0)
    for outputs in (4, 8):
        net[5] = nn.Linear(64, outputs)
        function(net)
    assert len(function.finish().accuracy) == 2


def test_a_layer_that_is_replaced_by_one_of_its_size_is_the_one_that_counts():
    net, found = network(), []
    watch = watched({"0": images(10, 300)})
    watch.task(0)
    for seed in range(3):
        net[0] = network(seed)[0]
        watch(net)
        found.append(measured(net, *images(10, 300)))
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(found)


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
        ({"measure": ""}, "measure must be a word"),
        ({"higher_is_better": False}, "a higher accuracy is better"),
    ],
)
def test_wrong_arguments_are_refused(given, line):
    with pytest.raises(twofold.UserError, match=re.escape(line)):
        watched(**given)


# Curves of other programs


def curves_of(run: Any) -> Any:
    return run.curves[["iteration", "task", "accuracy_1", "accuracy_2"]]


@pytest.fixture(scope="module")
def run() -> Any:
    watch = watched(schedule="dense:3:4", size=50)
    train(network(), watch, steps=12)
    return watch.finish()


def imported(file: Path, *words: str) -> Any:
    store = file.parent / "store"
    given = ["--benchmark", "mine", "--method", "theirs", "--seed", "0"]
    code = main(["runs", "import", str(file), "--runs", str(store), *given, *words])
    assert code == 0
    (found,) = twofold.Store(store).runs()
    return found


def same(found: Any, run: Any) -> None:
    assert np.array_equal(found.accuracy, run.accuracy, equal_nan=True)
    assert np.array_equal(found.columns["task"], run.columns["task"])
    assert found.gaps == run.gaps
    assert found.min == run.min


def test_a_wide_table_is_imported(tmp_path, run, capsys):
    curves_of(run).to_csv(tmp_path / "curves.csv", index=False)
    found = imported(tmp_path / "curves.csv", "--lr", "0.5", "--set", "width=8")
    same(found, run)
    assert found.config.lr == 0.5
    assert found.config.settings == {"width": 8}
    assert found.quantity(1) == "accuracy"
    assert found.config.eval_schedule == "dense:4:4"  # which means the same
    assert "1 run imported" in capsys.readouterr().out
    again = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    names = ["--benchmark", "mine", "--method", "theirs", "--seed", "0"]
    assert main([*again, *names, "--lr", "0.5", "--set", "width=8"]) == 2
    assert "removes it" in capsys.readouterr().err


def test_only_evaluated_rows_and_a_count_per_task_are_enough(tmp_path, run):
    curves = curves_of(run).dropna(subset="accuracy_1").copy()
    curves["step"] = curves.pop("iteration") - 12 * (curves["task"] - 1)
    curves["task"] = ["first" if task == 1 else "second" for task in curves["task"]]
    curves[["accuracy_1", "accuracy_2"]] /= 100
    curves.to_csv(tmp_path / "curves.tsv", sep="\t", index=False)
    found = imported(
        tmp_path / "curves.tsv", "--scale", "100", "--columns", "accuracy_1,accuracy_2"
    )
    assert np.allclose(found.accuracy, run.accuracy, equal_nan=True)


def test_a_long_table_is_imported(tmp_path, run):
    curves = curves_of(run).dropna(subset="accuracy_1")
    named = curves.rename(columns={"accuracy_1": "1", "accuracy_2": "2"})
    long = named.melt(["iteration", "task"], var_name="test", value_name="accuracy").dropna()
    long.sort_values(["iteration", "test"]).to_csv(tmp_path / "long.csv", index=False)
    found = imported(tmp_path / "long.csv", "--measure", "reward")
    same(found, run)
    assert found.quantity(2) == "reward"


def test_a_table_of_several_runs_is_imported(tmp_path, store):
    frame = twofold.Store(store).runs().where(width=16, method="replay").frame()
    frame.drop(columns="benchmark").to_csv(tmp_path / "all.csv", index=False)
    words = ["runs", "import", str(tmp_path / "all.csv"), "--runs", str(tmp_path / "new")]
    assert main([*words, "--benchmark", "mine"]) == 0
    runs = twofold.Store(tmp_path / "new").runs()
    assert [run.config.seed for run in runs] == [0, 1, 2]
    assert len(groups(runs)) == 1


def test_event_files_are_imported(tmp_path, run):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "events")) as writer:
        for row in curves_of(run).itertuples():
            writer.add_scalar("loss", 1.0, row.iteration)
            for task, value in enumerate((row.accuracy_1, row.accuracy_2), 1):
                if not np.isnan(value):
                    writer.add_scalar(f"accuracy/task {task}", value, row.iteration)
    same(imported(tmp_path / "events", "--switches", "12"), run)


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboard.backend.event_processing.event_accumulator", None)
    words = ["runs", "import", str(tmp_path), "--runs", str(tmp_path / "store"), "--seed", "0"]
    assert main([*words, "--benchmark", "mine", "--method", "theirs"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "event files need TensorBoard" in line
    assert "[tensorboard]" in line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n1,2\n", "has no column 'iteration'"),
        ("iteration,task,x\n1,1,high\n", "columns hold the values"),
        ("iteration,a,b\n1,1,2\n2,1,2\n", "which task was being learned?"),
        ("iteration,task,a\n1,1,5\n2,2,5\n", "there are 2 tasks and the columns a"),
        ("iteration,task,a,b\n1,1,5,\n2,2,,5\n", "'a' has no value after its own task"),
        ("iteration,task,a,b\n1,1,5,\n3,1,5,\n2,1,5,5\n", "iteration 2 comes after 3"),
        ("iteration,task,a\n1.5,1,5\n", "must count iterations with whole numbers"),
        ("iteration,task,test,value\n1,1,a,5\n1,1,a,6\n", "two values of 'a' at iteration 1"),
        ("", "is not a table that can be read"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tmp_path, capsys, text, line):
    (tmp_path / "curves.csv").write_text(text)
    words = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    assert main([*words, "--benchmark", "mine", "--method", "theirs", "--seed", "0"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert line in said
    assert not twofold.Store(tmp_path / "store").folders()


def test_names_of_an_imported_run_are_needed(tmp_path, capsys):
    (tmp_path / "curves.csv").write_text("iteration,task,a\n1,1,5\n")
    words = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    assert main([*words, "--benchmark", "mine", "--seed", "0"]) == 2
    assert "which method? Set it with --method" in capsys.readouterr().err
    assert main(["runs", "--scale", "2"]) == 2
    assert "--scale is for `twofold runs import`" in capsys.readouterr().err


def test_measures_and_gaps_of_plain_arrays():
    task, nan = [1, 1, 2, 2], float("nan")
    accuracy = [[50, nan], [90, nan], [60, 40], [85, 80]]
    found = twofold.measures(task, accuracy)
    assert found["min"] == 60
    assert found["avg"] == 82.5
    assert found["forgetting"] == 5
    (gap,) = twofold.gaps(task, accuracy)
    assert (gap.depth, gap.lowest_at, gap.recovery) == (30, 1, None)
    for wrong in (([0, 0, 1, 1], accuracy), ([1, 2], accuracy), ([1, 1, 3, 3], accuracy)):
        with pytest.raises(twofold.UserError):
            twofold.measures(*wrong)
        with pytest.raises(twofold.UserError):
            twofold.gaps(*wrong)


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
