"""What every objective does with every routine. A new one joins by being registered."""

from __future__ import annotations

import functools
import itertools
import random

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, dense_benchmark, domain_benchmark
from helpers.training import run_and_resume

from twofold.errors import UserError
from twofold.method import Method
from twofold.objectives import Objective
from twofold.results import Progress, Result
from twofold.routines import Routine
from twofold.settings import Settings
from twofold.training import Training

OBJECTIVES, ROUTINES = sorted(Objective.known), sorted(Routine.known)


MAKE = {"class": class_benchmark, "domain": domain_benchmark}


TASKS, ITERATIONS = 3, 4


def place(scenario: str, norm: bool) -> str:
    return f"{scenario}{'-norm' if norm else ''}"


PLACES = {
    place(scenario, norm): MAKE[scenario](TASKS, norm=norm)
    for scenario, norm in itertools.product(MAKE, (False, True))
}
PLACES["class-dense"] = dense_benchmark(TASKS)


def suits(objective: str, where: str) -> bool:
    return objective not in ("bic", "er-ace") or where.startswith("class")


def memory_for(method: str) -> str:
    """The paper's memory, with the current task if the method needs that."""
    needs_current = {"er-ace", "nmc"} & {*method.split("+")}
    return "per-class-task(10,current=true)" if needs_current else "per-class-task(10)"


def chain(routine: str) -> str:
    """The routine, after another one if it makes no sense alone."""
    try:
        Routine.find(routine)().check([], momentum=0.9)
    except UserError:
        return f"gem+{routine}"
    return routine


def covered(objective: str, routine: str, where: str) -> bool:
    """Every objective and every routine is tried everywhere, every pair in one place."""
    return objective == "er" or routine == "sgd" or where == "class-norm"


PAIRS = [
    (objective, routine, where)
    for where in PLACES
    for objective in OBJECTIVES
    for routine in ROUTINES
    if suits(objective, where) and covered(objective, routine, where)
    if (objective, routine) != ("joint", "nmc")  # which is refused
]


def each(pairs: list[tuple[str, str, str]]) -> pytest.MarkDecorator:
    """A test for each pair."""
    return pytest.mark.parametrize(("objective", "routine", "where"), pairs)


def global_random_state() -> list[object]:
    return [torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()]


def train(method: str, where: str, **options) -> tuple[Training, Result, list[torch.Tensor]]:
    """A run, and the weights at each evaluation."""
    objective, routines = Method.parse(method).make()
    weights: list[torch.Tensor] = []

    def keep(progress: Progress) -> None:
        weights.append(training.net.values.clone())

    options = {
        "iterations": ITERATIONS,
        "eval_schedule": "every:2",
        "memory": memory_for(method),
    } | options
    settings = Settings(**{"lr": 0.02, "batch_size": 8, "seed": 3} | options)
    training = Training(PLACES[where], objective, routines, settings, keep)
    for routine in routines:
        routine.direct = _watched(routine.direct)
    return training, training.run(), weights


def _watched(direct):
    """A routine's `direct` that must leave the gradients it is given as they are."""

    def checked(g, step):
        options = {"g": g, "old": step.old, "references": step.references}
        before = {name: vector.clone() for name, vector in options.items() if vector is not None}
        direction = direct(g, step)
        for name, vector in before.items():
            same = torch.equal(
                options[name].view(torch.int32), vector.view(torch.int32)
            )  # NaN, too
            assert same, f"{name} was changed in place"
        assert direction.shape == g.shape
        assert direction.dtype == g.dtype
        return direction

    return checked


@functools.cache
def trained(objective: str, routine: str, where: str):
    """The same as `train`, once for all tests, with the random state before and after."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    before = global_random_state()
    training, result, weights = train(f"{objective}+{chain(routine)}", where)
    return training, result, weights, before, global_random_state()


def same_curves(one: Result, other: Result, rows: slice = slice(None)) -> None:
    assert one.curves.keys() == other.curves.keys()
    for name, column in one.curves.items():
        np.testing.assert_array_equal(column[rows], other.curves[name][rows], err_msg=name)


@each(PAIRS)
def test_a_run_is_complete_and_finite(objective, routine, where):
    training, result, weights, _, _ = trained(objective, routine, where)
    curves, n = result.curves, TASKS * ITERATIONS
    assert result.finite
    assert {len(column) for column in curves.values()} == {n}
    assert curves["iteration"].tolist() == list(range(1, n + 1))
    assert curves["task"].tolist() == [t for t in (1, 2, 3) for _ in range(ITERATIONS)]
    expected = {"loss", "loss_new", "loss_old", "projected", "norm_ratio", "unsolved"}
    expected |= {f"accuracy_{k}" for k in (1, 2, 3)}
    assert expected <= curves.keys()
    for name in ("loss", "loss_new", "projected", "unsolved"):
        assert np.isfinite(curves[name].astype(float)).all(), name
    # Where inputs are mapped, g is computed for the ratio in every tenth iteration only.
    mapped = training.chain.takes_products and where == "class-dense"
    unknown = mapped & (curves["task"] > 1) & (np.arange(n) % ITERATIONS > 0)
    np.testing.assert_array_equal(np.isnan(curves["norm_ratio"]), unknown)
    assert set(np.unique(curves["projected"])) <= {0.0, 1.0}
    assert not curves["unsolved"].any()
    old = np.isfinite(curves["loss_old"].astype(float))
    replays = Objective.find(objective).replays != "nothing"
    assert old.tolist() == [replays and task > 1 for task in curves["task"]]
    others_evaluated = any(part.overrides("evaluated") for part in training.routines)
    kinds = ["accuracy", "raw_accuracy"] if others_evaluated else ["accuracy"]
    assert ("raw_accuracy_1" in curves) == others_evaluated
    for kind, k in itertools.product(kinds, (1, 2, 3)):
        accuracy = curves[f"{kind}_{k}"]
        evaluated = (curves["task"] >= k) & (curves["iteration"] % 2 == 0)
        assert np.array_equal(~np.isnan(accuracy), evaluated)
        assert ((accuracy[evaluated] >= 0) & (accuracy[evaluated] <= 100)).all()
    assert [len(ends) for ends in result.task_ends] == [1, 2, 3]
    assert [len(ends) for ends in result.raw_task_ends] == ([1, 2, 3] if others_evaluated else [])
    assert len(weights) == n // 2
    assert training.net.module.training


@each([pair for pair in PAIRS if not Routine.find(pair[1]).first_task])
def test_the_first_task_is_the_same_with_every_routine_that_leaves_it_alone(
    objective, routine, where
):
    """Bit for bit: there is no past yet that a routine could look at."""
    plain, other = trained(objective, "sgd", where), trained(objective, routine, where)
    for a, b in zip(plain[2][: ITERATIONS // 2], other[2][: ITERATIONS // 2], strict=True):
        assert torch.equal(a, b)
    for name, column in plain[1].curves.items():
        first = slice(0, ITERATIONS)
        same = other[1].curves.get(f"raw_{name}", other[1].curves[name])
        np.testing.assert_array_equal(column[first], same[first], err_msg=name)
    assert plain[1].task_ends[0] == (other[1].raw_task_ends or other[1].task_ends)[0]


@pytest.mark.parametrize("routine", [name for name in ROUTINES if Routine.find(name).first_task])
def test_a_routine_that_acts_in_the_first_task_changes_it(routine):
    option = {"clip": "(0.01)", "step": "(1)"}.get(routine, "")  # values that matter so early
    _, _, plain = train("er", "class-norm")
    _, _, other = train(f"er+{routine}{option}", "class-norm")
    assert not torch.equal(plain[0], other[0])


@each(PAIRS)
def test_global_random_state_is_not_touched(objective, routine, where):
    *_, before, after = trained(objective, routine, where)
    assert before == after


@each([pair for pair in PAIRS if pair[2] == "class-norm" and {"er", "sgd"} & {*pair}])
def test_the_same_run_twice_is_bitwise_the_same(objective, routine, where):
    _, first, weights, *_ = trained(objective, routine, where)
    torch.manual_seed(99)  # it does not depend on the global random state either
    np.random.seed(99)
    _, second, repeated = train(f"{objective}+{chain(routine)}", where)
    same_curves(first, second)
    assert first.task_ends == second.task_ends
    assert all(torch.equal(a, b) for a, b in zip(weights, repeated, strict=True))


@pytest.mark.parametrize("routine", ROUTINES)
def test_a_run_is_resumed_in_the_middle_of_a_task(routine, tmp_path):
    """What a routine keeps between iterations is in the checkpoint, all of it."""

    def made() -> Training:
        method = f"er+{chain(routine)}"
        small = {"lr": 0.02, "batch_size": 8, "seed": 3, "iterations": ITERATIONS}
        settings = Settings(memory=memory_for(method), **small)
        return Training(PLACES["class-norm"], *Method.parse(method).make(), settings)

    untouched, resumed = made(), made()
    first, second = run_and_resume(untouched, resumed, tmp_path / "checkpoint.pt")
    same_curves(first, second)
    assert (first.task_ends, first.raw_task_ends) == (second.task_ends, second.raw_task_ends)
    assert torch.equal(untouched.net.values, resumed.net.values)
    assert torch.equal(untouched.velocity, resumed.velocity)


@pytest.mark.parametrize("where", PLACES)
def test_objectives_differ_once_there_is_a_past(where):
    finals = [trained(name, "sgd", where)[2][-1] for name in OBJECTIVES if suits(name, where)]
    for one, other in itertools.combinations(finals, 2):
        assert not torch.equal(one, other)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("method", ["er+gem(when=always)", "finetune+agem", "joint+gem"])
def test_projections_are_counted_and_followed(method, where):
    training, result, _ = train(method, where, iterations=12, lr=0.05)
    projected = result.curves["projected"].astype(bool)
    assert projected.any()
    assert not projected[result.curves["task"] == 1].any()
    ratio = result.curves["norm_ratio"]
    np.testing.assert_allclose(ratio[~projected], 1, atol=1e-5)
    assert (np.abs(ratio[projected] - 1) > 1e-6).mean() > 0.5
    plain, _, _ = train(method.split("+")[0], where, iterations=12, lr=0.05)
    assert not torch.equal(training.net.values, plain.net.values)


def test_a_diverged_run_is_marked_and_continues():
    methods = ["er", "der+agem", "bic+gem", "er+torchjd:UPGrad"]
    for method in [*methods, *(f"er+{chain(routine)}" for routine in ROUTINES)]:
        _, result, _ = train(method, "class-norm", lr=1e30)
        assert not result.finite, method
        assert len(result.curves["loss"]) == TASKS * ITERATIONS


@pytest.mark.parametrize("routine", ["gem", "agem", "soft-gem", "mega", "pcgrad"])
def test_gradients_that_are_not_finite_are_counted(routine):
    _, result, _ = train(f"er+{routine}", "class", lr=1e30)
    assert result.curves["unsolved"][ITERATIONS:].any()
