"""Routines and steps: hooks, what a step offers, and chains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark

import twofold
from twofold import Method, Needs
from twofold.errors import UserError
from twofold.routines import Routine, Step
from twofold.settings import Settings
from twofold.training import Training

LONG_CHAIN = "er+gem(gamma=0.1)+clip(1.0)+warmup(500)+ema(0.999)"


def run(method: str, **options):
    options = {"batch_size": 8, "iterations": 6, "lr": 0.05} | options
    return twofold.run(domain_benchmark(), method, **options)


def test_a_long_chain_runs_and_is_written_as_it_is_read():
    trained_run = twofold.run(class_benchmark(), LONG_CHAIN, batch_size=8, iterations=6)
    assert trained_run.config.method == "er+gem(gamma=0.1)+clip+warmup+ema"
    assert twofold.configure("rotated-mnist", LONG_CHAIN).identity() == (
        twofold.configure("rotated-mnist", trained_run.config.method).identity()
    )
    assert {"raw_accuracy_1", "projected", "norm_ratio"} <= trained_run.columns.keys()
    assert np.isfinite(trained_run.columns["loss"]).all()


def test_order_is_meaning():
    """A direction that is clipped and then projected is not one projected and then clipped."""
    one = twofold.configure("rotated-mnist", "er+clip(0.1)+gem")
    other = twofold.configure("rotated-mnist", "er+gem+clip(0.1)")
    assert one.identity() != other.identity()
    first, second = run("er+clip(0.05)+gem(1.0,always)"), run("er+gem(1.0,always)+clip(0.05)")
    assert (first.columns["loss"] != second.columns["loss"]).any()
    ratio = second.columns["norm_ratio"] / first.columns["norm_ratio"]
    assert ratio[12:].max() < 1  # gem after clip adds to what was clipped


def test_a_routine_of_your_own_is_assumed_to_turn_the_gradient():
    class Own(Routine):
        def direct(self, g, step):
            return -g

    class Evaluated(Routine):
        def evaluated(self, net):
            raise NotImplementedError

    rescale, ema = Routine.find("rescale")(), Routine.find("ema")()
    rescale.check([Own()], momentum=0.9)
    with pytest.raises(UserError, match="a different routine"):
        ema.check([Own(), Evaluated()], momentum=0.9)


@pytest.mark.parametrize(
    ("first", "second", "either"),
    [(0.0, 0.0, 0), (1.0, 0.0, 1), (0.0, 1.0, 1), (1.0, 1.0, 1), (True, False, 1), (0.0, True, 1)],
)
def test_a_mark_of_an_earlier_routine_stays(first, second, either):
    as_tensor = [torch.tensor(v) if isinstance(v, bool) else v for v in (first, second)]
    step = Step(2, 1, None, torch.zeros(1))
    for value in as_tensor:
        step.mark(projected=value)
    assert float(step.log["projected"]) == either


def test_a_chain_counts_what_any_of_its_routines_projects():
    one = run("er+gem(1.0,always)", lr=0.05)
    chained = run("er+gem(1.0,always)+agem", lr=0.05)
    assert one.columns["projected"][6:].all()
    assert chained.columns["projected"][6:].all()


ITERATIONS, B = 6, 8


class NeedsBoth(Routine):
    """Asks for the old gradient and for one a past task; no name, so in no registry."""

    needs = Needs.OLD | Needs.PER_TASK

    def start(self, net):
        self.seen: list[tuple[int, bool, int]] = []

    def direct(self, g, step):
        rows = 0 if step.references is None else len(step.references)
        self.seen.append((step.task, step.old is not None, rows))
        return g


@pytest.mark.parametrize("method", ["finetune", "er", "joint", "der", "bic"])
def test_what_is_asked_for_is_there_from_the_second_task_on(method):
    objective, _ = Method.parse(method).make()
    routine = NeedsBoth()
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=2)
    Training(class_benchmark(), objective, [routine], settings).run()
    assert routine.seen == 2 * [(1, False, 0)] + 2 * [(2, True, 1)] + 2 * [(3, True, 2)]


@pytest.mark.parametrize("needs", [Needs.NOTHING, *Needs])
def test_what_is_not_asked_for_is_not_there(needs):
    records: list[tuple[bool, ...]] = []

    class Asks(Routine, name="asks"):
        def direct(self, g, step):
            if step.task > 1:
                given = (step.old, step.old_loss, step.references, step.memory, step.gradient_at)
                records.append(tuple(part is not None for part in given))
            return g

    Asks.needs = needs
    objective, _ = Method.parse("er").make()
    memory = {"memory": "reservoir(50)"} if needs == Needs.CURRENT else {}
    settings = Settings(lr=0.02, batch_size=B, seed=0, iterations=2, **memory)
    Training(class_benchmark(), objective, [Asks()], settings).run()
    old, per_task = needs in (Needs.OLD, Needs.FROZEN_OLD), needs == Needs.PER_TASK
    assert set(records) == {
        (old, old, per_task, needs == Needs.MEMORY, needs == Needs.ELSEWHERE),
    }


def test_a_routine_may_draw_from_the_memory_and_for_itself():
    records: dict[tuple[int, int], tuple[list[int], int]] = {}

    class Draws(Routine):
        needs = Needs.MEMORY

        def direct(self, g, step):
            if step.memory is not None:
                rows = step.memory(5).rows.tolist()
                records[step.task, step.iteration] = rows, int(step.random().integers(10**9))
            return g

    def run(seed: int):
        records.clear()
        objective, _ = Method.parse("finetune").make()
        settings = Settings(lr=0.02, batch_size=B, seed=seed, iterations=2)
        training = Training(class_benchmark(), objective, [Draws()], settings)
        training.run()
        return training, dict(records)

    training, first = run(0)
    assert list(first) == [(2, 1), (2, 2), (3, 1), (3, 2)]
    stored = [set(training.benchmark.tasks[k].train.tolist()) for k in (0, 1)]
    for (task, _), (rows, _) in first.items():
        assert len(set(rows)) == 5
        assert set(rows) <= set.union(*stored[: task - 1])
    assert len({number for _, number in first.values()}) == 4
    assert run(0)[1] == first
    assert run(1)[1] != first


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


def test_a_misspelt_hook_is_named():
    output = r"routine 'mine' overrides none of direct, .*: did you mean direct\?$"
    with pytest.raises(UserError, match=output):

        class Mine(Routine, name="mine"):
            def direkt(self, g, step):
                return 0 * g

    assert "mine" not in Routine.known


def test_a_routine_that_does_nothing_is_refused():
    with pytest.raises(UserError, match=r"routine 'mine' overrides none of direct, .*, evaluated$"):

        class Mine(Routine, name="mine"):
            def __post_init__(self):
                pass


@pytest.mark.parametrize(
    "hook", ["direct", "step_size", "momentum", "after_step", "start", "start_task", "evaluated"]
)
def test_any_hook_will_do_also_an_inherited_one(hook):
    class Mine(Routine, name="mine"):
        locals()[hook] = lambda self, *given: None

    class More(Mine, name="more"):
        pass

    class Gem(Routine.known["gem"], name="gem-of-mine"):
        scale = 2.0

    assert {"mine", "more", "gem-of-mine"} <= set(Routine.known)
