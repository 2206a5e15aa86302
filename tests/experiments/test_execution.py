"""Weights that runs keep, and runs that start from weights: bitwise, also after interruptions."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.commandline import Command, one_line, runs_in
from torch import nn

import twofold
from twofold import Benchmark, Routine, Run, Store, UserError
from twofold.experiments import weights
from twofold.experiments.config import configure
from twofold.experiments.estimate import seconds_left
from twofold.training import Training

SHORT: dict[str, Any] = {"batch_size": 10, "iterations": 4, "tasks": 2}
EMA = "er+ema(0.5)"

State = Mapping[str, torch.Tensor]

STOPS = SimpleNamespace()  # beside the routine, whose own attributes would make a different run


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """The weights that each training in this process ended with."""
    ends: list[dict[str, torch.Tensor]] = []
    original = Training.run

    def run(self: Training, *args: Any) -> Any:
        result = original(self, *args)
        ends.append(self.net.state())
        return result

    monkeypatch.setattr(Training, "run", run)
    return ends


@pytest.fixture
def stops() -> Any:
    """A routine that interrupts its run in the third iteration of a task."""

    class Stops(Routine, name="stops"):
        def after_step(self, step: Any) -> None:
            STOPS.count += 1
            if (step.task, step.iteration) == (STOPS.task, 3):
                raise KeyboardInterrupt

    STOPS.task, STOPS.count = 2, 0
    return STOPS


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def files(run: Run) -> list[str]:
    assert run.folder is not None
    return sorted(path.name for path in (run.folder / "weights").glob("*"))


# Weights that are kept


@pytest.mark.parametrize("stored", [False, True])
def test_the_weights_at_the_end_are_the_trained_ones(
    stored: bool, tmp_path: Path, trained: list[State]
) -> None:
    out = {"out": tmp_path} if stored else {}
    run = twofold.run(class_benchmark(), "er", keep_weights="end", **SHORT, **out)
    assert list(run.states) == ["end"]
    assert same(run.weights(), trained[-1])
    if stored:
        assert files(run) == ["end.safetensors"]
        assert not list((tmp_path / ".work").glob("*/weights"))


def test_the_weights_after_every_task(tmp_path: Path, trained: list[State]) -> None:
    run = twofold.run(class_benchmark(), "er", keep_weights="switches", out=tmp_path, **SHORT)
    assert files(run) == ["task-1.safetensors", "task-2.safetensors"]
    assert same(run.weights(), trained[-1])
    assert same(run.weights(2), trained[-1])
    alone = twofold.run(class_benchmark(), "er", keep_weights="end", **{**SHORT, "tasks": 1})
    assert same(run.weights(1), alone.weights())


def test_without_the_option_none_are_kept(tmp_path: Path) -> None:
    run = twofold.run(class_benchmark(), "er", out=tmp_path, **SHORT)
    assert (list(run.states), files(run)) == ([], [])


def test_keeping_weights_changes_neither_identity_nor_curves() -> None:
    runs = [twofold.run(class_benchmark(), EMA, keep_weights=kept, **SHORT)
            for kept in ("none", "end", "switches")]  # fmt: skip
    assert len({run.config.identity() for run in runs}) == 1
    for name, column in runs[0].columns.items():
        assert all(run.columns[name].tobytes() == column.tobytes() for run in runs)


def test_an_evaluated_average_is_kept_beside_the_trained_weights(
    tmp_path: Path, trained: list[State]
) -> None:
    run = twofold.run(class_benchmark(), EMA, keep_weights="end", out=tmp_path, **SHORT)
    assert files(run) == ["end-trained.safetensors", "end.safetensors"]
    assert same(run.states["end-trained"], trained[-1])
    assert not same(run.weights(), trained[-1])


@pytest.mark.parametrize("method", ["er", "bic", EMA, "joint+gem"])
@pytest.mark.parametrize("norm", [True, False])
def test_the_model_predicts_with_the_recorded_accuracy(
    method: str, norm: bool, tmp_path: Path
) -> None:
    toy = class_benchmark(norm=norm)
    kept = twofold.run(toy, method, keep_weights="switches", out=tmp_path, batch_size=10)
    if method == "bic":  # its predictions add a correction to the network's
        assert kept.model(model=toy.model)
        return
    for after in (1, 2, 3, None):
        model = kept.model(after, toy.model)
        recorded = kept.summary["accuracy_after_task"][(after or 3) - 1]
        assert accuracies(model, toy, len(recorded)) == pytest.approx(recorded, abs=1e-4)


def accuracies(model: nn.Module, toy: Benchmark, tasks: int) -> list[float]:
    """On the whole test sets, among the classes of the tasks so far."""
    seen = sorted({label for task in toy.tasks[:tasks] for label in task.classes})
    results = []
    for task in toy.tasks[:tasks]:
        batch = toy.test.batch(task.test)
        with torch.no_grad():
            predicted = torch.tensor(seen)[model(batch.x)[:, seen].argmax(1)]
        results.append(100 * float((predicted == batch.y).float().mean()))
    return results


@pytest.mark.parametrize("kept", ["end", "switches"])
@pytest.mark.parametrize("task", [1, 2])
def test_an_interrupted_run_ends_with_the_same_weights(
    kept: Any, task: int, stops: Any, tmp_path: Path
) -> None:
    toy = class_benchmark()
    options = {**SHORT, "keep_weights": kept, "checkpoint_every": 0, "out": tmp_path}
    stops.task = task
    with pytest.raises(KeyboardInterrupt):
        twofold.run(toy, f"{EMA}+stops", **options)
    stops.task, stops.count = None, 0
    continued = twofold.run(toy, f"{EMA}+stops", **options)
    assert stops.count == 2 + (4 if task == 1 else 0)
    whole = twofold.run(toy, EMA, keep_weights=kept, **SHORT)
    assert continued.states.keys() == whole.states.keys()
    assert all(same(continued.states[name], whole.states[name]) for name in whole.states)


@pytest.mark.parametrize("before", ["none", "end"])
def test_a_checkpoint_without_the_weights_of_earlier_tasks_is_not_continued(
    before: Any, stops: Any, tmp_path: Path
) -> None:
    toy = class_benchmark()
    with pytest.raises(KeyboardInterrupt):
        twofold.run(toy, "er+stops", keep_weights=before, checkpoint_every=0, out=tmp_path, **SHORT)
    stops.task = None
    run = twofold.run(toy, "er+stops", keep_weights="switches", out=tmp_path, **SHORT)
    assert files(run) == ["task-1.safetensors", "task-2.safetensors"]
    whole = twofold.run(toy, "er", keep_weights="switches", **SHORT)
    assert all(same(run.states[name], whole.states[name]) for name in whole.states)


def test_weights_of_an_earlier_attempt_are_not_taken_for_those_at_the_end(
    stops: Any, tmp_path: Path
) -> None:
    toy = class_benchmark()
    options = {**SHORT, "checkpoint_every": 0, "out": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        twofold.run(toy, "er+stops", keep_weights="end", **options)  # keeps those after task 1
    stops.task = None
    assert files(twofold.run(toy, "er+stops", **options)) == []


# Runs that were trained before weights were asked for


@pytest.mark.parametrize(
    ("before", "asked", "again"),
    [
        ("none", "none", False),
        ("none", "end", True),
        ("none", "switches", True),
        ("end", "none", False),
        ("end", "end", False),
        ("end", "switches", True),
        ("switches", "end", False),
        ("switches", "switches", False),
    ],
)
def test_a_run_without_the_weights_asked_for_is_trained_again(
    before: Any, asked: Any, again: bool, tmp_path: Path, trained: list[State]
) -> None:
    toy = class_benchmark()
    first = twofold.run(toy, "er", keep_weights=before, out=tmp_path, **SHORT)
    config = configure(toy, "er", keep_weights=asked, **SHORT)
    assert (Store(tmp_path).find(config) is None) == again
    second = twofold.run(toy, "er", keep_weights=asked, out=tmp_path, **SHORT)
    assert len(trained) == 1 + again
    assert runs_in(tmp_path) == [first.folder] == [second.folder]
    if asked != "none":
        assert same(second.weights(), trained[0])


def test_a_dry_run_counts_it_as_missing(tmp_path: Path, fixed_speed: None) -> None:
    plugin = str(Path(__file__).parents[1] / "helpers" / "plugin.py")
    options: dict[str, Any] = {**SHORT, "plugins": [plugin]}
    twofold.run("toy", "er", out=tmp_path, **options)
    configs = [configure("toy", "er", keep_weights=kept, **options) for kept in ("none", "end")]
    result, missing = seconds_left(configs, Store(tmp_path), None)
    assert result is None
    assert missing is not None


def test_run_all_trains_it_again_too(tmp_path: Path, trained: list[State]) -> None:
    toy = class_benchmark()
    for kept in ("none", "end", "end"):
        config = configure(toy, "er", keep_weights=kept, **SHORT)
        (run,) = twofold.run_all([config], out=tmp_path)
    assert len(trained) == 2
    assert same(run.weights(), trained[0])


# Runs that start from weights


Source = Callable[[Run], Any]
SOURCES: dict[str, Source] = {
    "a run": lambda run: run,
    "a folder": lambda run: run.folder,
    "the name of a folder": lambda run: str(run.folder),
    "a file": lambda run: run.folder / "weights" / "end.safetensors",
    "a module": lambda run: run.model(model=class_benchmark().model),
    "a state dict": lambda run: run.weights(),
}


@pytest.fixture
def source(tmp_path: Path) -> Run:
    return twofold.run(
        class_benchmark(), EMA, seed=3, keep_weights="end", out=tmp_path / "first", **SHORT
    )


@pytest.mark.parametrize("kind", SOURCES)
def test_a_run_starts_from_these_weights(
    kind: str, source: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    starts: list[State] = []
    original = Training.run

    def run(self: Training, *args: Any) -> Any:
        starts.append(self.net.state())
        return original(self, *args)

    monkeypatch.setattr(Training, "run", run)
    start = SOURCES[kind](source)
    trained_run = twofold.run(
        class_benchmark(), "er", start_from=start, out=tmp_path / "next", **SHORT
    )
    assert same(starts[0], source.weights())
    digest = weights.digest(source.weights())
    assert trained_run.config.start_digest == digest
    assert Run.load(trained_run.folder or "").config.start_digest == digest
    plain = configure(class_benchmark(), "er", **SHORT)
    by_run = configure(class_benchmark(), "er", start_from=source, **SHORT)
    assert trained_run.config.identity() == by_run.identity() != plain.identity()


def test_different_weights_make_different_runs(source: Run) -> None:
    changed = {name: value + 1 for name, value in source.weights().items()}
    configs = [
        configure(class_benchmark(), "er", start_from=start, **SHORT)
        for start in ("", None, source, changed)
    ]
    identities = [config.identity() for config in configs]
    assert identities[0] == identities[1]
    assert len(set(identities)) == 3


def test_a_module_that_is_trained_further_changes_nothing(trained: list[State]) -> None:
    toy = class_benchmark()
    module = toy.model()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    config = configure(toy, "er", start_from=module, **SHORT)
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    assert config.start_digest == weights.digest(before)
    one = twofold.run(toy, "er", start_from=before, **SHORT)
    assert one.config.identity() == config.identity()
    assert not same(trained[0], module.state_dict())


def test_weights_in_memory_are_used_by_run_all(source: Run, tmp_path: Path) -> None:
    config = configure(class_benchmark(), "er", start_from=source, **SHORT)
    (run,) = twofold.run_all([config], out=tmp_path / "next", workers=2)
    alone = twofold.run(class_benchmark(), "er", start_from=source, **SHORT)
    assert run.columns["loss"].tobytes() == alone.columns["loss"].tobytes()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (nn.Linear(2, 2), "weights of a different network: they lack '0.weight'"),
        (class_benchmark(norm=False).model(), "weights of a different network: they lack '1."),
        (class_benchmark(tasks=4).model(), "'4.weight' has shape [12, 256], and here [9, 256]"),
        (3, "start from a run that kept its weights, a safetensors file, a module or its state "
         "dict, not int"),
        ({"a": 3}, "not dict"),
        ("nowhere", "can't read the weights nowhere: No such file"),
    ],
    ids=["different layers", "no batch norm", "more outputs", "a number", "a dict", "no file"],
)  # fmt: skip
def test_what_cannot_be_started_from_is_told_in_one_line(
    start: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        twofold.run(class_benchmark(), "er", start_from=start, out=tmp_path, **SHORT)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert runs_in(tmp_path) == []


def test_a_run_that_kept_no_weights_is_no_start(tmp_path: Path) -> None:
    run = twofold.run(class_benchmark(), "er", out=tmp_path, **SHORT)
    for start in (run, run.folder):
        with pytest.raises(UserError, match='train it with keep_weights="end"'):
            twofold.run(class_benchmark(), "er", start_from=start, **SHORT)


def test_a_file_that_changed_since_is_refused(source: Run) -> None:
    assert source.folder is not None
    file = source.folder / "weights" / "end.safetensors"
    config = configure(class_benchmark(), "er", start_from=file, **SHORT)
    weights.write(file, {name: value + 1 for name, value in source.weights().items()})
    with pytest.raises(UserError, match="have changed since the run was configured"):
        twofold.run_all([config], out=source.folder.parent, engine="inline")


# On the command line


def test_the_command_keeps_weights_and_starts_from_them(
    run_tiny: Command, tmp_path: Path, trained: list[State]
) -> None:
    (first,) = run_tiny("er", "--keep-weights", "switches", "--json").objects
    assert same(Run.load(first["folder"]).weights(), trained[0])
    assert same(Run.load(first["folder"]).model().state_dict(), trained[0])
    (repeated,) = run_tiny("er", "--keep-weights", "end", "--json").objects
    assert repeated["folder"] == first["folder"]
    options = ("--start-from", first["folder"], "--keep-weights", "end", "--json")
    (second,) = run_tiny("er", *options).objects
    assert second["identity"] != first["identity"]
    assert f"--start-from {first['folder']}" in second["command"]
    started = Run.load(second["folder"])
    assert started.config.start_digest == weights.digest(trained[0])
    assert same(started.weights(), trained[1])
    assert len(trained) == 2
    wrong = tmp_path / "wrong.safetensors"
    weights.write(wrong, nn.Linear(3, 4).state_dict())
    result = run_tiny("er", "--start-from", wrong)
    assert result.code == 2
    assert "weights of a different network" in one_line(result.err)


# Memory


def test_a_finished_run_leaves_no_network_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker trains many runs, and each would add its images and its network."""
    networks: list[weakref.ref[Any]] = []
    original = Training.run

    def run(self: Training, *args: Any) -> Any:
        networks.append(weakref.ref(self.net))
        return original(self, *args)

    monkeypatch.setattr(Training, "run", run)
    gc.disable()
    try:
        twofold.run(class_benchmark(), "er", **SHORT)
        assert [network() for network in networks] == [None]
    finally:
        gc.enable()
