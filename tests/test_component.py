"""Components: names, registration, and components of your own beside those of the package."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import Recorder
from torch.nn import functional as F

import twofold
from twofold import Draw, Method, Needs, Objective, Recipe, Routine, Step, Term, UserError
from twofold.discovery import import_file
from twofold.settings import Settings
from twofold.training import Training

HALF = """
from twofold import Routine
class Half(Routine, name="half-of-it"):
    def direct(self, g, step):
        return {share} * g
"""


def plugin(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        (Routine, "gem", "there is a routine 'gem' already: choose a different name"),
        (Objective, "er", "there is an objective 'er' already: choose a different name"),
        (
            Recipe,
            "rotated-mnist",
            "there is a benchmark 'rotated-mnist' already: choose a different",
        ),
    ],
)
def test_a_plugin_takes_no_name_that_is_taken(tmp_path, kind, name, told):
    present = kind.known[name]
    text = f"""
        from twofold import {kind.__name__}
        class Mine({kind.__name__}, name="{name}"):
            def direct(self, g, step):
                return g
    """.replace("\n        ", "\n")
    with pytest.raises(UserError, match=told):
        import_file(plugin(tmp_path / "mine.py", text))
    assert kind.known[name] is present


def test_nor_one_of_another_plugin(tmp_path):
    import_file(plugin(tmp_path / "one.py", HALF.format(share=0.5)))
    with pytest.raises(UserError, match="there is a routine 'half-of-it' already"):
        import_file(plugin(tmp_path / "other.py", HALF.format(share=0.4)))


def test_a_file_may_be_executed_anew(tmp_path):
    file = plugin(tmp_path / "half.py", HALF.format(share=0.5))
    import_file(file)
    before = Routine.known["half-of-it"]
    del sys.modules[before.__module__]
    plugin(tmp_path / "half.py", HALF.format(share=0.4))
    import_file(file)
    assert Routine.known["half-of-it"] is not before


def test_the_same_text_may_come_from_two_folders(tmp_path):
    """A node of a cluster does so once per run."""
    for folder in ("one", "other"):
        import_file(plugin(tmp_path / folder / "half.py", HALF.format(share=0.5)))


def test_a_script_may_be_its_own_plugin(tmp_path):
    script = """
if __name__ == "__main__":
    import twofold
    twofold.configure("rotated-mnist", "er+half-of-it", plugins=[__file__])
"""
    plugin(tmp_path / "script.py", HALF.format(share=0.5) + script)
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True)


def test_a_cell_of_a_notebook_may_be_run_again():
    for _ in range(2):

        class Again(Routine, name="again"):
            def direct(self, g, step):
                return g

    assert Routine.known["again"] is Again


ITERATIONS, B = 6, 8


@pytest.fixture(autouse=True)
def own_components():
    """What a user's file would define."""

    @dataclass
    class Ramp(Routine, name="ramp"):
        """Small steps after a task switch, growing to the full size."""

        steps: int = 3

        def step_size(self, lr: float, step: Step) -> float:
            return lr if step.task == 1 else lr * min(1.0, step.iteration / self.steps)

    @dataclass
    class Average(Routine, name="average"):
        """Evaluates an exponential average of the weights; training goes on as it would."""

        decay: float = 0.9

        def start(self, net):
            self.average = net.values.clone()
            self.buffers = [b.clone() for b in net.buffers()]

        def after_step(self, step: Step) -> None:
            self.average.lerp_(step.net.values, 1 - self.decay)
            self.buffers = [b.clone() for b in step.net.buffers()]

        @contextmanager
        def evaluated(self, net):
            with net.using(self.average, self.buffers):
                yield

    class Mine(Routine, name="mine"):
        """Follows the mean of g and of all tasks' reference gradients; no options at all."""

        needs = Needs.PER_TASK

        def direct(self, g, step):
            if step.references is None:
                return g
            step.log["tasks"] = len(step.references)
            return torch.cat([g[None], step.references]).mean(0)

    @dataclass
    class Smooth(Objective, name="smooth"):
        """ER with smoothed labels."""

        smoothing: float = 0.1

        replays = "total"

        def passes(self, draw: Draw):
            def loss(y):
                return lambda logits: F.cross_entropy(logits, y, label_smoothing=self.smoothing)

            new = Term("new", 1 / draw.task, draw.new.x, loss(draw.new.y))
            if draw.old is None:
                return [[new]]
            return [[new, Term("old", 1 - 1 / draw.task, draw.old.x, loss(draw.old.y))]]


def train(method: str, benchmark=None, **options):
    objective, routines = Method.parse(method).make()
    options = {"lr": 0.02, "iterations": ITERATIONS, "momentum": 0.0} | options
    settings = Settings(batch_size=B, seed=0, **options)
    training = Training(benchmark or class_benchmark(), objective, routines, settings)
    return training, training.run()


def accuracies(benchmark, module) -> list[float]:
    results = []
    for task in benchmark.tasks:
        x, y, *_ = benchmark.test.batch(task.test)
        results.append(100 * float((module(x).argmax(1) == y).float().mean()))
    return results


def test_own_components_are_found_by_name_with_their_options():
    objective, routines = Method.parse("smooth(0.2)+ramp(steps=5)+average(0.5)+mine").make()
    assert objective.explicit() == {"smoothing": 0.2}
    assert [r.explicit() for r in routines] == [{"steps": 5}, {"decay": 0.5}, {}]
    assert Method.parse("ramp(steps=3)").text() == "ramp"
    with pytest.raises(UserError, match="did you mean 'ramp'"):
        Method.parse("er+rmap")
    with pytest.raises(UserError, match="ramp's steps must be a whole number"):
        Method.parse("er+ramp(steps=few)")
    with pytest.raises(UserError, match="mine has no options"):
        Method.parse("er+mine(1)")


@pytest.mark.parametrize("benchmark", [class_benchmark, domain_benchmark])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize(
    "method",
    [
        "er+mine+average",
        "er+ramp+average",
        "er+gem+ramp(steps=2)+average(decay=0.5)",
        "joint+mine+agem",
        "ramp",
        "smooth",
        "smooth+gem",
        "smooth+agem+mine+average",
    ],
)
def test_own_components_run_with_the_packages_own(method, norm, benchmark):
    run = twofold.run(benchmark(norm=norm), method, batch_size=B, iterations=ITERATIONS, lr=0.02)
    assert np.isfinite(run.columns["loss"]).all()
    assert 0 <= run.min <= 100
    assert 0 <= run.avg <= 100
    assert run.config.method == method
    assert not run.summary["diverged"]


def test_a_ramp_scales_the_steps_after_a_switch():
    moved: dict[str, list[float]] = {}

    class Ruler(Routine):
        """Measures each step against the direction; in no registry, as it has no name."""

        def __init__(self, sizes):
            self.sizes = sizes

        def direct(self, g, step):
            self.norm, self.before = float(g.norm()), step.net.values.clone()
            return g

        def after_step(self, step):
            self.sizes.append(float((step.net.values - self.before).norm()) / self.norm)

    for method in ("er", "er+ramp(steps=4)"):
        objective, routines = Method.parse(method).make()
        sizes = moved[method] = []
        settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=ITERATIONS, momentum=0.0)
        Training(class_benchmark(), objective, [*routines, Ruler(sizes)], settings).run()
    assert moved["er"] == pytest.approx(3 * ITERATIONS * [0.02], rel=1e-3)
    ramp = [0.005, 0.01, 0.015, 0.02, 0.02, 0.02]
    expected = ITERATIONS * [0.02] + ramp + ramp
    assert moved["er+ramp(steps=4)"] == pytest.approx(expected, rel=1e-3)


def test_an_average_is_evaluated_and_training_is_unchanged():
    plain, one = train("er")
    averaged, other = train("er+average(decay=0.8)")
    assert torch.equal(plain.net.values, averaged.net.values)
    np.testing.assert_array_equal(one.curves["loss"], other.curves["loss"])
    (average,) = averaged.routines
    with averaged.net.using(average.average, average.buffers):
        expected = accuracies(averaged.benchmark, averaged.net.copy())
    assert other.task_ends[-1] == pytest.approx(expected)
    last = [other.curves[f"accuracy_{k}"][-1] for k in (1, 2, 3)]
    assert last == pytest.approx(expected)
    assert other.task_ends != one.task_ends  # and it does make a difference


def test_an_average_of_the_latest_weights_alone_changes_nothing():
    _, one = train("er")
    _, other = train("er+average(decay=0)")
    for name, column in one.curves.items():
        np.testing.assert_array_equal(column, other.curves[name], err_msg=name)
    assert one.task_ends == other.task_ends


def test_the_objective_prepares_for_evaluation_with_the_weights_to_be_evaluated():
    records: list[bool] = []
    objective, (average,) = Method.parse("er+average").make()
    objective.before_evaluation = lambda: records.append(
        torch.equal(objective.net.values, average.average)
    )
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=ITERATIONS)
    Training(class_benchmark(), objective, [average], settings).run()
    # Before each evaluation of the average, and then of the weights that are trained.
    assert records == 3 * (ITERATIONS + 1) * [True, False]


def test_a_routine_gets_the_gradients_of_past_tasks_and_its_log_is_recorded():
    training, result = train("er+mine")
    tasks = result.curves["tasks"]
    assert np.isnan(tasks[:ITERATIONS]).all()
    assert tasks[ITERATIONS:].tolist() == ITERATIONS * [1.0] + ITERATIONS * [2.0]
    assert (result.curves["norm_ratio"][ITERATIONS:] != 1).all()
    plain, _ = train("er")
    assert not torch.equal(training.net.values, plain.net.values)


def test_an_objective_of_your_own_is_optimised():
    plain, one = train("er")
    same, other = train("smooth(0)")
    np.testing.assert_allclose(one.curves["loss"], other.curves["loss"], rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(plain.net.values, same.net.values, rtol=1e-4, atol=1e-6)
    _, smooth = train("smooth(0.5)")
    assert smooth.curves["loss"][-1] > one.curves["loss"][-1] + 0.1


def test_a_component_without_a_name_is_in_no_registry():
    assert Recorder not in Routine.known.values()
    assert {"ramp", "average", "mine"} <= set(Routine.known)
