"""Routines and objectives of one's own, written outside the package and chained with its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from torch.nn import functional as F

import twofold
from twofold import Draw, Method, Needs, Objective, Routine, Step, Term, UserError
from twofold.settings import Settings
from twofold.training import Training

ITERATIONS, B = 6, 8


@pytest.fixture(autouse=True)
def own_components():
    """A user's file, as it were; what it registers is forgotten afterwards."""
    registered = [(kind, dict(kind.known)) for kind in (Objective, Routine)]

    @dataclass
    class Ramp(Routine, name="ramp"):
        """Small steps after a task switch, growing to the full size."""

        steps: int = 3

        def step_size(self, lr: float, step: Step) -> float:
            return lr if step.task == 1 else lr * min(1.0, step.iteration / self.steps)

    @dataclass
    class Average(Routine, name="average"):
        """Judges an exponential average of the weights; training goes on as it would."""

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

    yield
    for kind, known in registered:
        kind.known.clear()
        kind.known.update(known)


def train(method: str, benchmark=None, **options):
    objective, routines = Method.parse(method).make()
    options = {"lr": 0.02, "iterations": ITERATIONS, "momentum": 0.0} | options
    settings = Settings(batch_size=B, seed=0, **options)
    training = Training(benchmark or class_benchmark(), objective, routines, settings)
    return training, training.run()


def accuracies(benchmark, module) -> list[float]:
    found = []
    for task in benchmark.tasks:
        x, y, _ = benchmark.test.batch(task.test)
        found.append(100 * float((module(x).argmax(1) == y).float().mean()))
    return found


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


def test_an_average_is_judged_while_training_goes_on_as_without():
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


def test_the_objective_prepares_for_evaluation_with_the_weights_to_be_judged():
    seen: list[bool] = []
    objective, (average,) = Method.parse("er+average").make()
    objective.before_evaluation = lambda: seen.append(
        torch.equal(objective.net.values, average.average)
    )
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=ITERATIONS)
    Training(class_benchmark(), objective, [average], settings).run()
    # Before each evaluation of the average, and then of the weights that are trained.
    assert seen == 3 * (ITERATIONS + 1) * [True, False]


def test_a_routine_gets_the_gradients_of_past_tasks_and_its_log_is_recorded():
    training, result = train("er+mine")
    tasks = result.curves["tasks"]
    assert np.isnan(tasks[:ITERATIONS]).all()
    assert tasks[ITERATIONS:].tolist() == ITERATIONS * [1.0] + ITERATIONS * [2.0]
    assert (result.curves["norm_ratio"][ITERATIONS:] != 1).all()
    plain, _ = train("er")
    assert not torch.equal(training.net.values, plain.net.values)


def test_routines_of_a_chain_act_in_the_order_written():
    calls: list[str] = []

    class Named(Routine):
        def __init__(self, label, factor, shift):
            self.label, self.factor, self.shift = label, factor, shift

        def start(self, net):
            calls.append(f"start {self.label}")

        def start_task(self, task):
            calls.append(f"task {self.label}")

        def direct(self, g, step):
            calls.append(f"direct {self.label}")
            return g * self.factor + self.shift

        def step_size(self, lr, step):
            return lr * self.factor

        def after_step(self, step):
            calls.append(f"after {self.label}")

    class Keep(Routine):
        def direct(self, g, step):
            self.g, self.before = g.clone(), step.net.values.clone()
            return g

        def after_step(self, step):
            self.moved = step.net.values - self.before

    first, last = Keep(), Keep()
    objective, _ = Method.parse("finetune").make()
    chain = [first, Named("a", 2.0, 0.0), Named("b", 1.0, 1.0), last]
    settings = Settings(lr=0.01, batch_size=B, seed=0, iterations=1, tasks=1)
    Training(class_benchmark(), objective, chain, settings).run()
    assert calls == [
        *("start a", "start b", "task a", "task b"),
        *("direct a", "direct b", "after a", "after b"),
    ]
    torch.testing.assert_close(last.g, first.g * 2 + 1)  # not (g + 1) * 2
    torch.testing.assert_close(last.moved, -0.01 * 2 * last.g, rtol=1e-3, atol=1e-6)


def test_an_objective_of_ones_own_is_what_is_optimised():
    plain, one = train("er")
    same, other = train("smooth(0)")
    np.testing.assert_allclose(one.curves["loss"], other.curves["loss"], rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(plain.net.values, same.net.values, rtol=1e-4, atol=1e-6)
    _, smooth = train("smooth(0.5)")
    assert smooth.curves["loss"][-1] > one.curves["loss"][-1] + 0.1


class NeedsBoth(Routine):
    """Asks for the old gradient and for one a past task; no name, so in no registry."""

    needs = Needs.OLD | Needs.PER_TASK

    def start(self, net):
        self.seen: list[tuple[int, bool, int]] = []

    def direct(self, g, step):
        rows = 0 if step.references is None else len(step.references)
        self.seen.append((step.task, step.old is not None, rows))
        return g


@pytest.mark.parametrize("method", ["finetune", "er", "joint", "der", "smooth"])
def test_what_is_asked_for_is_there_from_the_second_task_on(method):
    objective, _ = Method.parse(method).make()
    routine = NeedsBoth()
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=2)
    Training(class_benchmark(), objective, [routine], settings).run()
    assert routine.seen == 2 * [(1, False, 0)] + 2 * [(2, True, 1)] + 2 * [(3, True, 2)]


@pytest.mark.parametrize("needs", [Needs.NOTHING, *Needs])
def test_what_is_not_asked_for_is_not_there(needs):
    seen: list[tuple[bool, ...]] = []

    class Asks(Routine):
        def direct(self, g, step):
            if step.task > 1:
                given = (step.old, step.old_loss, step.references, step.memory, step.gradient_at)
                seen.append(tuple(part is not None for part in given))
            return g

    Asks.needs = needs
    objective, _ = Method.parse("er").make()
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=2)
    Training(class_benchmark(), objective, [Asks()], settings).run()
    old, per_task = needs in (Needs.OLD, Needs.FROZEN_OLD), needs == Needs.PER_TASK
    assert set(seen) == {
        (old, old, per_task, needs == Needs.MEMORY, needs == Needs.ELSEWHERE),
    }


def test_a_routine_may_draw_from_the_memory_and_for_itself():
    seen: dict[tuple[int, int], tuple[list[int], int]] = {}

    class Draws(Routine):
        needs = Needs.MEMORY

        def direct(self, g, step):
            if step.memory is not None:
                rows = step.memory(5).rows.tolist()
                seen[step.task, step.iteration] = rows, int(step.random().integers(10**9))
            return g

    def run(seed: int):
        seen.clear()
        objective, _ = Method.parse("finetune").make()
        settings = Settings(lr=0.02, batch_size=B, seed=seed, iterations=2)
        training = Training(class_benchmark(), objective, [Draws()], settings)
        training.run()
        return training, dict(seen)

    training, first = run(0)
    assert list(first) == [(2, 1), (2, 2), (3, 1), (3, 2)]
    stored = [set(training.benchmark.tasks[k].train.tolist()) for k in (0, 1)]
    for (task, _), (rows, _) in first.items():
        assert len(set(rows)) == 5
        assert set(rows) <= set.union(*stored[: task - 1])
    assert len({number for _, number in first.values()}) == 4
    assert run(0)[1] == first
    assert run(1)[1] != first


def references_seen(method: str) -> list[torch.Tensor]:
    """`step.old` as each routine of the chain sees it in the first iteration of task 2."""
    objective, routines = Method.parse(method).make()
    seen: list[torch.Tensor] = []

    def noted(direct):
        def call(g, step):
            if (step.task, step.iteration) == (2, 1):
                seen.append(step.old.clone())
            return direct(g, step)

        return call

    for routine in routines:
        routine.direct = noted(routine.direct)
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=2, tasks=2)
    Training(class_benchmark(norm=True), objective, routines, settings).run()
    return seen


def test_routines_that_ask_for_different_old_gradients_get_them_or_are_refused():
    """With batch norm, the objective's own g_old and the frozen one differ."""
    (own,), (frozen,) = references_seen("er+agem"), references_seen("er+agem(frozen)")
    assert not torch.allclose(own, frozen)
    try:
        seen = references_seen("er+agem+agem(frozen)")
    except UserError:
        return
    torch.testing.assert_close(seen[0], own)
    torch.testing.assert_close(seen[1], frozen)


def test_a_component_without_a_name_is_in_no_registry():
    assert NeedsBoth not in Routine.known.values()
    assert {"ramp", "average", "mine"} <= set(Routine.known)
