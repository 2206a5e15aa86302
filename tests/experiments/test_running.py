"""`run` and `run_all`: found, continued, waited for, never replaced; values, lists and studies."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.commandline import runs_in

import twofold
from twofold import Method, Routine, Run, Runs, Store, Study, UserError
from twofold.experiments import execution, running, studies
from twofold.experiments.config import configure
from twofold.experiments.digests import with_data
from twofold.experiments.engine import InlineEngine
from twofold.experiments.local import LocalEngine
from twofold.experiments.options import Work
from twofold.objectives import Er, Finetune
from twofold.routines import Agem, Clip, Gem
from twofold.training import Training

SHORT: dict[str, Any] = {"batch_size": 10, "iterations": 4, "tasks": 2}
PLUGIN = str(Path(__file__).parents[1] / "helpers" / "plugin.py")
STUDY = f"""
plugins = [{PLUGIN!r}]
seeds = 2

[[grid]]
benchmark = "toy"
method = ["er", "er+gem"]
batch_size = 10
iterations = 2
tasks = 2
"""


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The objectives of all trainings that began, in this process."""
    starts: list[str] = []
    original = Training.run

    def run(self: Training, *args: Any) -> Any:
        starts.append(self.objective.name)
        return original(self, *args)

    monkeypatch.setattr(Training, "run", run)
    return starts


@pytest.fixture
def study(tmp_path: Path) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY)
    return str(file)


STOPS = SimpleNamespace()  # beside the routine, whose own attributes would make a different run


@pytest.fixture
def stops() -> SimpleNamespace:
    """A routine that raises `error` after the iteration `at` of task 2, and counts iterations."""

    class Stops(Routine, name="stops"):
        def after_step(self, step: Any) -> None:
            STOPS.steps.append((step.task, step.iteration))
            if STOPS.error is not None and (step.task, step.iteration) == (2, STOPS.at):
                raise STOPS.error

    STOPS.error, STOPS.at, STOPS.steps = KeyboardInterrupt(), 2, []
    return STOPS


def same_curves(one: Run, other: Run) -> bool:
    names = one.columns.keys() | other.columns.keys()
    return all(one.columns[name].tobytes() == other.columns[name].tobytes() for name in names)


# One run


def test_without_out_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainings: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = twofold.run(class_benchmark(), "er", **SHORT)
    assert run.folder is None
    assert trainings == ["er"]
    assert list(tmp_path.iterdir()) == []


def test_a_complete_run_is_found_and_not_trained_again(
    tmp_path: Path, trainings: list[str]
) -> None:
    first = twofold.run(class_benchmark(), "er", out=tmp_path, **SHORT)
    second = twofold.run(class_benchmark(), "er", out=str(tmp_path), **SHORT)
    assert trainings == ["er"]
    assert second.folder == first.folder
    assert second.summary == first.summary
    assert same_curves(first, second)


def test_an_interrupted_run_continues_from_its_checkpoint(tmp_path: Path, stops: Any) -> None:
    toy = class_benchmark()
    with pytest.raises(KeyboardInterrupt):
        twofold.run(toy, "er+stops", out=tmp_path, checkpoint_every=0, **SHORT)
    assert stops.steps == [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2)]
    assert runs_in(tmp_path) == []
    stops.steps.clear()
    stops.error = None
    continued = twofold.run(toy, "er+stops", out=tmp_path, checkpoint_every=0, **SHORT)
    # The iteration in which it was interrupted has no checkpoint.
    assert stops.steps == [(2, 2), (2, 3), (2, 4)]
    assert same_curves(continued, twofold.run(toy, "er", **SHORT))


def _hold(out: Path, config: twofold.Config, pipe: Any) -> None:
    with Store(out).claim(config) as work:
        pipe.send(work is not None)
        pipe.recv()


def test_a_run_that_a_different_process_has_claimed_is_waited_for(
    tmp_path: Path, trainings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = class_benchmark()
    config = configure(toy, "er", **SHORT)
    Store(tmp_path).prepare()
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    holder = fork.Process(target=_hold, args=(tmp_path, config, theirs))
    holder.start()
    assert ours.recv()
    waits: list[int] = []

    def sleep(seconds: float) -> None:
        waits.append(len(trainings))
        if len(waits) == 3:  # the claim ends
            ours.send(None)
            holder.join()

    monkeypatch.setattr(execution.time, "sleep", sleep)
    try:
        run = twofold.run(toy, "er", out=tmp_path, **SHORT)
    finally:
        holder.kill()
    assert waits == [0, 0, 0], "it must not train while the claim is held"
    assert trainings == ["er"]
    assert runs_in(tmp_path) == [run.folder]


def test_a_different_run_is_never_replaced(tmp_path: Path) -> None:
    toy = class_benchmark()
    first = twofold.run(toy, "er", out=tmp_path, **SHORT)
    assert first.folder is not None
    before = {file: file.read_bytes() for file in first.folder.iterdir()}
    twofold.run(toy, "er", out=tmp_path, **{**SHORT, "lr": 0.05})
    twofold.run(toy, "er+gem", out=tmp_path, **SHORT)
    twofold.run(class_benchmark(norm=False), "er", out=tmp_path, **SHORT)
    assert len(runs_in(tmp_path)) == 4
    assert {file: file.read_bytes() for file in first.folder.iterdir()} == before


@pytest.mark.parametrize("stored", [False, True])
def test_the_exception_of_a_users_routine_is_raised_as_it_is(
    stored: bool, tmp_path: Path, stops: Any
) -> None:
    stops.error = ZeroDivisionError("mine")
    out = {"out": tmp_path} if stored else {}
    with pytest.raises(ZeroDivisionError) as caught:
        twofold.run(class_benchmark(), "er+stops", **SHORT, **out)
    assert caught.value is stops.error


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("er+gem(gamma=0.5)+clip(1.0)", lambda: Er() + Gem(gamma=0.5) + Clip(1.0)),
        ("er+gem(gamma=0.1,when=always)", lambda: Er() + Gem(0.1, when="always")),
        ("er", lambda: Er()),
        ("gem", lambda: Finetune() + Gem()),
        ("gem+clip(1)", lambda: Gem() + Clip(1.0)),
        ("er+agem", lambda: Method.parse("er") + Agem()),
    ],
)
def test_text_and_values_are_the_same_run(text: str, value: Any) -> None:
    for options in ({}, {"profile": "published"}):
        one, other = (configure("rotated-mnist", m, **options) for m in (text, value()))
        assert one == other
        assert one.identity() == other.identity()


def test_a_method_as_a_value_is_found_under_its_text(tmp_path: Path, trainings: list[str]) -> None:
    toy = class_benchmark()
    first = twofold.run(toy, Er() + Gem(gamma=0.25), out=tmp_path, **SHORT)
    second = twofold.run(toy, "er + gem(0.25)", out=tmp_path, **SHORT)
    assert (first.folder, trainings) == (second.folder, ["er"])


# Mistakes


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Er() + 3, "a method consists of an objective and routines, such as Er() + Gem(), "
         "not of 3"),
        (lambda: Er() + Gem, "the class Gem: write Gem()"),
        (lambda: Er() + "gem", "not of 'gem'"),
        (lambda: Er() + Finetune(), "'finetune' is a second objective, and a method has one"),
        (lambda: Er() + Gem() + Er(), "'er' is a second objective, and a method has one"),
        (lambda: Gem(gama=1), "unknown option of gem 'gama': did you mean 'gamma'?"),
        (lambda: Gem(gamma="x"), "gem's gamma must be a finite number, not 'x'"),
        (lambda: twofold.run("rotated-mnist", 3), "not of 3"),
        (lambda: twofold.run("rotated-mnist", Gem), "the class Gem: write Gem()"),
        (lambda: twofold.run(3, "er"), "a benchmark is a name or a Benchmark, not 3"),
        (lambda: twofold.run("rotated-mnits", "er"), "did you mean 'rotated-mnist'?"),
        (lambda: twofold.run("rotated-mnist", "er", iteratons=3),
         "unknown option 'iteratons': did you mean 'iterations'?"),
        (lambda: twofold.run("rotated-mnist", "er", lr="high"),
         "lr must be a finite number, not 'high'"),
        (lambda: twofold.run("rotated-mnist", "er", workers=2), "unknown option 'workers'"),
        (lambda: configure("rotated-mnist", "er", memory_grupping="class"),
         "did you mean 'memory_grouping'?"),
        (lambda: configure("rotated-mnist", "er", out="x"), "unknown option 'out'"),
        (lambda: twofold.run_all("mian"), "unknown study 'mian': did you mean 'main'?"),
        (lambda: twofold.run_all(3), "runs are configurations or studies, not 3"),
        (lambda: twofold.run_all([3]), "runs are configurations or studies, not 3"),
        (lambda: twofold.run_all(["er"]), "runs are configurations or studies, not 'er'"),
        (lambda: twofold.run_all([], worker=2), "unknown option 'worker': did you mean 'workers'?"),
        (lambda: twofold.run_all([], engine="lokal"), "did you mean 'local'?"),
        (lambda: twofold.run_all([], address="auto"), "belong to the engine ray"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_in_one_line(
    act: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        act()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# Several runs


def toy_configs(*methods: str, **options: Any) -> list[twofold.Config]:
    values = {**SHORT, "plugins": [PLUGIN], **options}
    return running.listed((configure("toy", method, **values) for method in methods), None)


def test_runs_come_back_in_the_order_of_the_list(tmp_path: Path, trainings: list[str]) -> None:
    configs = toy_configs("er+gem", "finetune", "er")
    runs = twofold.run_all(configs, out=tmp_path, engine="inline")
    assert isinstance(runs, Runs)
    assert [run.config for run in runs] == configs
    assert trainings == ["er", "finetune", "er"]
    second = twofold.run_all(reversed(configs), out=tmp_path, engine="inline")
    assert [run.config for run in second] == configs[::-1]
    assert len(trainings) == 3


def test_a_study_its_name_and_lists_of_both(
    tmp_path: Path, study: str, trainings: list[str]
) -> None:
    out = tmp_path / "runs"
    loaded = studies.load(study)
    by_name = twofold.run_all(study, out=out, engine="inline")
    assert [(run.config.method, run.config.seed) for run in by_name] == [
        (method, seed) for method in ("er", "er+gem") for seed in (142, 152)
    ]
    assert isinstance(loaded, Study)
    (own,) = toy_configs("finetune")
    mixed = twofold.run_all([own, loaded, own, *loaded.configs()], out=out, engine="inline")
    assert [run.config.method for run in mixed] == ["finetune", "er", "er", "er+gem", "er+gem"]
    assert Counter(trainings) == {"er": 4, "finetune": 1}
    alone = twofold.run_all(own, out=out, engine="inline")
    assert [run.config for run in alone] == [own]
    assert len(trainings) == 5


def test_no_runs_are_no_runs(tmp_path: Path) -> None:
    runs = twofold.run_all([], out=tmp_path)
    assert (len(runs), runs.failures) == (0, {})


def test_workers_train_what_run_finds(tmp_path: Path, trainings: list[str]) -> None:
    """Python and the command are one way in: what workers trained, `run` does not train again."""
    (config,) = toy_configs("er")
    runs = twofold.run_all([config], out=tmp_path, workers=1)
    assert trainings == []  # in this process
    result = twofold.run("toy", "er", out=tmp_path, plugins=[PLUGIN], **SHORT)
    assert trainings == []
    assert same_curves(result, runs[0])
    assert same_curves(result, twofold.run(class_benchmark(), "er", **SHORT))


def test_own_tensors_are_trained_in_this_process(tmp_path: Path, trainings: list[str]) -> None:
    configs = [configure(toy(), "er", **SHORT) for toy in (class_benchmark, domain_benchmark)]
    runs = twofold.run_all([*configs, *toy_configs("finetune")], out=tmp_path, workers=2)
    assert [run.config.benchmark for run in runs] == ["class-toy", "domain-toy", "toy"]
    assert trainings == ["er", "er", "finetune"]


@pytest.mark.parametrize("engine", ["inline", "local"])
def test_failures_are_named_and_stop_nothing(engine: Any, tmp_path: Path) -> None:
    configs = toy_configs("er+broken", "er", "gem")
    runs = twofold.run_all(configs, out=tmp_path, engine=engine, workers=1)
    assert [run.config.method for run in runs] == ["er", "gem"]
    assert runs.failures == {
        configs[0].folder_name(): "ZeroDivisionError: broken on purpose",
    }
    second = twofold.run_all(configs[1:], out=tmp_path, engine="inline")
    assert second.failures == {}


def test_a_mistake_in_one_run_ends_all(tmp_path: Path) -> None:
    configs = toy_configs("er") + toy_configs("er", batch_size=61)
    with pytest.raises(UserError, match="batch size 61 is larger than a task"):
        twofold.run_all(configs, out=tmp_path, engine="inline")


def test_the_store_is_called_runs_unless_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (run,) = twofold.run_all(toy_configs("er"), engine="inline")
    assert run.folder is not None
    assert run.folder.parent == Path("runs")


# Engines


def test_the_engine_follows_from_the_options() -> None:
    configs = toy_configs("er")
    local = running.engine_of(Work(workers=3, checkpoint_every=7), configs)
    assert local == LocalEngine(3, [], 7)
    assert running.engine_of(Work(), configs) == LocalEngine(os.cpu_count() or 1, [])
    assert running.engine_of(Work(engine="inline"), configs) == InlineEngine()
    own = configure(class_benchmark(), "er", **SHORT)
    assert running.engine_of(Work(workers=2), [*configs, own]) == InlineEngine()


def test_the_list_has_each_run_once(study: str) -> None:
    loaded = studies.load(study)
    once = [with_data(config, None) for config in loaded.configs()]
    assert running.listed(study, None) == running.listed(loaded, None) == once
    assert running.listed([loaded, *loaded.configs()], None) == once


# Progress


def test_nothing_is_printed_unless_someone_watches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twofold.run(class_benchmark(), "er", **SHORT)
    twofold.run(class_benchmark(), "er", out=tmp_path, **SHORT)
    twofold.run_all(toy_configs("er"), out=tmp_path, engine="inline")
    assert capsys.readouterr() == ("", "")


def test_progress_is_printed_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twofold.experiments.progress.LINE_EVERY", 0.0)
    monkeypatch.setattr(running, "sparsely", lambda tell: tell)
    run = twofold.run(class_benchmark(), "er", out=tmp_path, progress=True, **SHORT)
    out, err = capsys.readouterr()
    assert out == ""
    first, *_, last = err.splitlines()
    assert first.startswith("er seed 142: task 1, 1/8, ")
    assert last == f"er seed 142: MIN {run.min:.1f}  AVG {run.avg:.1f}"
    twofold.run(class_benchmark(), "er", out=tmp_path, progress=True, **SHORT)
    assert capsys.readouterr().err.endswith("  (was there already)\n")
    twofold.run_all(toy_configs("gem", "er"), out=tmp_path, engine="inline", progress=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if "MIN" in line]
    assert [line.split(":")[0] for line in lines] == ["gem seed 142", "er seed 142"]


def test_json_is_a_line_per_run_on_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twofold.run_all(toy_configs("gem", "er"), out=tmp_path, engine="inline", json=True)
    out, err = capsys.readouterr()
    assert [line.count('"identity"') for line in out.splitlines()] == [1, 1]
    assert err == ""
