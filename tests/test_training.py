"""Training: the loop against plain PyTorch, its length, its memory, its weights."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import contextmanager

import numpy as np
import pytest
import quadprog
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import trained, training_of
from torch import nn
from torch.nn import functional as F

from twofold import Benchmark, run
from twofold.errors import UserError
from twofold.method import Method
from twofold.objectives import Draw, Objective
from twofold.results import Progress, Result
from twofold.settings import Settings
from twofold.training import Training, initialised

LR, SEED, ITERATIONS = 0.05, 3, 8


MAKE = {"class": class_benchmark, "domain": domain_benchmark}


PLACES = {
    f"{scenario}{'-norm' * norm}": MAKE[scenario](4, norm=norm)
    for scenario, norm in itertools.product(MAKE, (False, True))
}


def ours(method: str, benchmark: Benchmark, momentum: float) -> tuple[Training, Result, list[Draw]]:
    objective, routines = Method.parse(method).make()
    draws, passes = [], objective.passes
    objective.passes = lambda draw: (draws.append(draw), passes(draw))[1]
    settings = Settings(lr=LR, batch_size=8, seed=SEED, iterations=ITERATIONS, momentum=momentum)
    training = Training(benchmark, objective, routines, settings)
    return training, training.run(), draws


@contextmanager
def frozen(module: nn.Module):
    """Batch norm at its running statistics, and its scale and shift without gradients."""
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    for norm in norms:
        norm.eval().requires_grad_(False)
    yield
    for norm in norms:
        norm.train().requires_grad_(True)


def flat_gradient(module: nn.Module) -> torch.Tensor:
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in module.parameters()]
    return torch.cat([part.flatten() for part in parts])


def projected(g: torch.Tensor, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """GEM's, with gamma 0.5, by the solver of its authors."""
    G = torch.stack(list(rows))
    if not bool((G @ g < 0).any()):
        return g
    M, q = G.double().numpy(), (G @ g).double().numpy()
    P = M @ M.T + 1e-3 * np.eye(len(M))
    v = quadprog.solve_qp(P, -q, np.eye(len(M)), np.full(len(M), 0.5))[0]
    return g + torch.from_numpy(v).float() @ G


def ordinary(benchmark: Benchmark, draws: list[Draw], momentum: float, add_up: bool | None):
    """Step by step. add_up: whether GEM's references do (D2); None for no GEM."""
    module = benchmark.model()
    start = initialised(benchmark, SEED, torch.device("cpu"))
    module.load_state_dict(start.module.state_dict())
    optimiser = torch.optim.SGD(module.parameters(), lr=LR, momentum=momentum)
    losses, projections = [], 0
    for draw in draws:
        x, t = draw.new.x, draw.task
        logits = module(x if draw.old is None else torch.cat([x, draw.old.x]))
        loss = F.cross_entropy(logits[: len(x)], draw.new.y) / t
        if draw.old is not None:
            loss = loss + (1 - 1 / t) * F.cross_entropy(logits[len(x) :], draw.old.y)
        optimiser.zero_grad()
        loss.backward()
        if add_up is not None and draw.references:
            g, rows = flat_gradient(module), []
            with frozen(module):
                optimiser.zero_grad()
                for batch in draw.references:
                    if not add_up:
                        optimiser.zero_grad()
                    F.cross_entropy(module(batch.x), batch.y).backward()
                    rows.append(flat_gradient(module))
            direction = projected(g, rows)
            projections += direction is not g
            parts = direction.split([p.numel() for p in module.parameters()])
            for p, part in zip(module.parameters(), parts, strict=True):
                p.grad = part.view_as(p).clone()
        optimiser.step()
        losses.append(loss.item())
    return module, losses, projections


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(
    ("method", "add_up"),
    [("er", None), ("er+gem", False), ("er+gem(references=cumulative)", True)],
)
def test_a_run_is_the_ordinary_loop(method, add_up, where, momentum):
    benchmark = PLACES[where]
    training, result, draws = ours(method, benchmark, momentum)
    module, losses, projections = ordinary(benchmark, draws, momentum, add_up)
    assert len(losses) == 4 * ITERATIONS
    assert projections == result.curves["projected"].sum()
    assert (projections > 0) == (add_up is not None)
    np.testing.assert_allclose(result.curves["loss"], losses, rtol=1e-3, atol=1e-5)
    for key, value in training.net.module.state_dict().items():
        torch.testing.assert_close(value, module.state_dict()[key], rtol=1e-3, atol=1e-4)


def iterations_of(**options) -> int:
    """Return how long the curves are: three tasks of 60 examples, 12 iterations offline."""
    _, result = trained("er", **{"iterations": None, "eval_schedule": "every:9"} | options)
    return len(result.curves["loss"])


@pytest.mark.parametrize(("batch", "count"), [(8, 7), (10, 6), (60, 1)])
def test_online_is_one_pass_without_the_last_partial_batch(batch, count):
    assert iterations_of(mode="online", batch_size=batch) == 3 * count


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 36),
        ({"iterations": 5}, 15),
        ({"iterations": 20}, 36),
        ({"mode": "online", "iterations": 5}, 15),
        ({"mode": "online", "iterations": 20}, 21),
        ({"tasks": 2, "iterations": 4}, 8),
    ],
    ids=str,
)
def test_modes_and_limits_decide_how_many_iterations_there_are(options, count):
    assert iterations_of(**options) == count


@pytest.mark.parametrize("objective", sorted(Objective.known))
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_how_many_iterations_there_will_be_is_known_from_the_start(objective, mode):
    """Also where examples are held out: of 90 a task, `bic` trains on 84."""
    reports: list[Progress] = []
    memory = "per-class-task(20,current=true)" if objective == "er-ace" else "per-class-task(20)"
    settings = Settings(mode=mode, lr=0.02, batch_size=8, seed=3, memory=memory)
    parts = Method.parse(objective).make()
    Training(class_benchmark(examples=90), *parts, settings, on_progress=reports.append).run()
    assert {progress.iterations for progress in reports} == {reports[-1].iteration}


def stored_by(method: str, **options) -> list[np.ndarray]:
    """Return the memory after two tasks, a part per task."""
    options = {"memory_per_class": 10, "iterations": 2, "tasks": 2} | options
    return trained(method, **options)[0].memory.parts


def test_all_methods_with_one_seed_store_the_same_examples():
    parts = stored_by("er")
    for method in ("er+gem", "er+agem", "gem", "der", "der+agem", "finetune"):
        for a, b in zip(stored_by(method), parts, strict=True):
            assert np.array_equal(a, b), method
    for a, b in zip(stored_by("bic"), parts, strict=True):
        assert set(a) < set(b)  # the others of the same examples validate
    other = stored_by("er", seed=1)
    assert not np.array_equal(other[0], parts[0])


def test_a_run_groups_its_memory_as_it_is_told():
    benchmark = domain_benchmark()
    assert sum(map(len, stored_by("er", benchmark=benchmark))) == 2 * 3 * 10
    grouped = stored_by("er", benchmark=benchmark, memory_grouping="class")
    assert sum(map(len, grouped)) == 3 * 10
    joint = stored_by("joint", benchmark=benchmark, memory_grouping="class")
    assert sum(map(len, joint)) == 2 * 60  # all of it, whatever the grouping


def test_initialisation_depends_on_the_seed_and_on_nothing_else():
    benchmark, cpu = class_benchmark(), torch.device("cpu")
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = initialised(benchmark, 1, cpu).values
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    assert torch.equal(initialised(benchmark, 1, cpu).values, first)
    assert not torch.equal(initialised(benchmark, 2, cpu).values, first)


def test_a_network_with_too_few_outputs_is_refused():
    x, y = torch.zeros(60, 8), torch.arange(60) % 3
    tasks = [(x, y, x, y), (x, y + 3, x, y + 3)]
    benchmark = Benchmark.from_tensors("mine", tasks, model=lambda: nn.Linear(8, 5))
    with pytest.raises(UserError, match=r"5 outputs.*'mine'.*labels up to 5.*at least 6"):
        run(benchmark, "er", batch_size=10, iterations=2)
    assert run(benchmark, "er", batch_size=10, iterations=2, tasks=1)


def test_progress_is_told_after_every_evaluation():
    reports: list[Progress] = []
    training = training_of("er", eval_schedule="every:4")
    training.on_progress = reports.append
    columns = training.run().curves
    assert [(each.task, each.iteration) for each in reports] == [
        (task, 6 * (task - 1) + n) for task in (1, 2, 3) for n in (4, 6)
    ]
    assert {each.iterations for each in reports} == {18}
    for each in reports:
        row = [columns[f"accuracy_{k + 1}"][each.iteration - 1] for k in range(each.task)]
        assert float(each.accuracy) == pytest.approx(np.mean(row), rel=1e-6)


@pytest.mark.parametrize(("method", "others"), [("er", False), ("er+ema(0.5)", True)])
def test_weights_are_handed_over_at_the_end_of_each_task(method, others):
    records = []
    training = training_of(method)
    training.on_task_end = lambda *given: records.append(given)
    training.run()
    assert [task for task, _, _ in records] == [1, 2, 3]
    assert all((raw is not None) == others for _, _, raw in records)
    _, evaluated, raw = records[-1]
    trained_weights = training.net.state()
    for name, value in (raw if others else evaluated).items():
        assert torch.equal(value, trained_weights[name]), name
    if others:
        assert not torch.equal(evaluated["0.weight"], raw["0.weight"])


def test_training_starts_from_given_weights():
    benchmark, settings = class_benchmark(), Settings(lr=0.02, batch_size=8, seed=0, iterations=2)
    source = benchmark.model()
    start = {name: value.clone() for name, value in source.state_dict().items()}
    training = Training(benchmark, *Method.parse("er").make(), settings, start_from=start)
    for name, value in training.net.state().items():
        assert torch.equal(value, start[name]), name
    training.run()
    for name, value in source.state_dict().items():
        assert torch.equal(value, start[name]), name  # those given stay as they are


def test_weights_of_a_different_network_are_refused():
    weights, settings = class_benchmark(tasks=2).model().state_dict(), Settings(batch_size=8)
    message = r"^weights of a different network: '4.weight' has shape \[6, 256\], and here \[9"
    with pytest.raises(UserError, match=message):
        Training(class_benchmark(), *Method.parse("er").make(), settings, start_from=weights)
