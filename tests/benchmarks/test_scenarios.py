"""Scenario task: each task is trained and evaluated among its own classes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import run_and_resume, trained, training_of
from torch import Tensor, nn
from torch.nn import functional as F

import twofold
from twofold import Recipe, UserError
from twofold.benchmarks.base import Pool
from twofold.benchmarks.scenarios import in_scenario, own_outputs
from twofold.compare.groups import groups
from twofold.compare.selection import method_groups

T = 2.0  # distil's temperature


class Heads(nn.Module):
    """A body and a head per task, of three classes each: the same weights in another shape."""

    def __init__(self, model: nn.Sequential) -> None:
        super().__init__()
        self.body = model[:-1]
        self.heads = nn.ModuleList(nn.Linear(256, 3) for _ in range(3))
        with torch.no_grad():
            for k, head in enumerate(self.heads):
                head.weight.copy_(model[-1].weight[3 * k : 3 * k + 3])
                head.bias.copy_(model[-1].bias[3 * k : 3 * k + 3])

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of all heads, [tasks, N, 3]."""
        hidden = self.body(x)
        return torch.stack([head(hidden) for head in self.heads])

    def flat(self) -> Tensor:
        body = [p.detach().flatten() for p in self.body.parameters()]
        parts = [[head.weight for head in self.heads], [head.bias for head in self.heads]]
        return torch.cat([*body, *(torch.cat(list(part)).detach().flatten() for part in parts)])


def own_loss(logits: Tensor, y: Tensor) -> Tensor:
    """The mean cross-entropy within the head of each example's task."""
    places = enumerate(y.tolist())
    losses = [F.cross_entropy(logits[c // 3, i], torch.tensor(c % 3)) for i, c in places]
    return torch.stack(losses).mean()


EITHER = ("er", "er+distil(0.5)", "der(alpha=0.3,augment=none)")  # with and without batch norm


# With batch norm, joint mixes tasks in several passes.
@pytest.mark.parametrize(
    ("method", "norm"),
    [("joint", False), *((method, norm) for method in EITHER for norm in (False, True))],
)
def test_training_is_that_of_a_network_with_a_head_per_task(method, norm):
    benchmark = class_benchmark(norm=norm)
    training = training_of(method, benchmark=benchmark, iterations=3, scenario="task")
    model = benchmark.model()
    model.load_state_dict(training.net.module.state_dict())
    model, draws, passes = Heads(model), [], training.objective.passes
    training.objective.passes = lambda draw: (draws.append(draw), passes(draw))[1]
    training.run()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    stored: dict[int, Tensor] = {}  # logits of the own head by row, at the end of the task
    before: Heads | None = None
    for number, draw in enumerate(draws):
        t, new, old = draw.task, draw.new, draw.old
        if number and draws[number - 1].task < t:
            before = Heads(benchmark.model())
            before.load_state_dict(model.state_dict())
            before.eval()
            rows = benchmark.tasks[t - 2].train
            with torch.no_grad():
                logits = before(benchmark.train.batch(rows).x)[t - 2]
            stored |= dict(zip(rows.tolist(), logits, strict=True))
        if old is None:
            loss = own_loss(model(new.x), new.y)
        else:
            logits = model(torch.cat([old.x, new.x]))
            b = len(old.y)
            if method.startswith("der"):
                dark = [stored[row] for row in old.rows.tolist()]
                own = [logits[c // 3, i] for i, c in enumerate(old.y.tolist())]
                pairs = zip(own, dark, strict=True)
                loss = 0.3 * torch.stack([(a - z).square().mean() for a, z in pairs]).mean()
                loss = loss + own_loss(logits[:, b:], new.y)
            else:
                loss = (1 - 1 / t) * own_loss(logits[:, :b], old.y)
                loss = loss + 1 / t * own_loss(logits[:, b:], new.y)
        if method.startswith("er+") and before is not None:
            with torch.no_grad():
                theirs = before(torch.cat([old.x, new.x]))
            for k in range(t - 1):
                p, q = ((z[k] / T).softmax(1) for z in (theirs, logits))
                loss = loss + 0.5 * T**2 * (p * (p / q).log()).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ours = torch.cat([p.detach().flatten() for p in training.net.module.parameters()])
    torch.testing.assert_close(ours, model.flat(), rtol=1e-3, atol=1e-4)


def hard_benchmark(norm: bool) -> twofold.Benchmark:
    """Class-incremental with noise, so that accuracies lie between 0 and 100."""
    benchmark, random = class_benchmark(norm=norm), torch.Generator().manual_seed(1)
    pools = {
        name: Pool(pool.images + 4 * torch.randn(pool.images.shape, generator=random), labels, None)
        for name, pool in (("train", benchmark.train), ("test", benchmark.test))
        for labels in [pool.labels]
    }
    return dataclasses.replace(benchmark, **pools)


def own_accuracies(training, module: nn.Module, drawn: bool = False) -> list[float]:
    """Accuracies among the own classes of each task, image by image."""
    benchmark, results = training.benchmark, []
    for k, task in enumerate(benchmark.tasks):
        rows = training.evaluator._rows(k) if drawn else task.test
        x, y, *_ = benchmark.test.batch(rows)
        own = torch.tensor(task.classes)
        with torch.no_grad():
            predicted = own[module.eval()(x)[:, own].argmax(1)]
        results.append(100 * (predicted == y).float().mean().item())
    return results


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("er", {}),
        ("er", {"norm": False}),
        ("er", {"eval_precision": "bf16"}),
        ("er", {"eval_schedule": "exact-min"}),
        ("er", {"validation": 0.2}),
        ("er+ema(0.5)", {}),
        ("er+nmc(50)", {"memory": "reservoir(60)"}),
    ],
)
def test_every_evaluation_is_among_the_own_classes(method, options):
    norm, kinds = options.pop("norm", True), {"eval_size": 20, "scenario": "task"} | options
    training, result = trained(method, benchmark=hard_benchmark(norm), **kinds)
    plain = own_accuracies(training, training.net.copy())
    drawn = own_accuracies(training, training.net.copy(), drawn=True)
    raw = "raw_" if result.raw_task_ends else ""
    ends = result.raw_task_ends or result.task_ends
    assert ends[-1] == pytest.approx(plain)
    assert [result.curves[f"{raw}accuracy_{k}"][-1] for k in (1, 2, 3)] == pytest.approx(drawn)
    if raw:
        with training.chain.evaluated(training.net):
            evaluated = own_accuracies(training, training.net.copy())
        assert result.task_ends[-1] == pytest.approx(evaluated)
        assert evaluated != plain
    everything = [dataclasses.replace(task, classes=range(9)) for task in training.benchmark.tasks]
    training.benchmark = dataclasses.replace(training.benchmark, tasks=tuple(everything))
    assert sum(own_accuracies(training, training.net.copy())) < sum(plain)  # among all classes


def test_minima_are_exact_among_the_own_classes():
    every, searched = (
        trained("er", benchmark=hard_benchmark(True), scenario="task", eval_schedule=schedule)[
            1
        ].curves
        for schedule in ("every", "exact-min")
    )
    for k in (1, 2):
        later = every["task"] > k
        assert np.nanmin(searched[f"lowest_{k}"][later]) == every[f"accuracy_{k}"][later].min()


class Told(nn.Module):
    """A network that takes task ids, and finds the same in its inputs."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        self.heads = nn.Parameter(torch.randn(3, 16, 3) / 4)
        self.body, self.end = nn.Linear(8, 16), nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(16) if norm else nn.Identity()

    def forward(self, x: Tensor, task: Tensor) -> Tensor:
        assert task.dtype == torch.int64
        assert torch.equal(x[:, 0].long(), task)
        hidden = self.norm(self.body(x)).relu()
        return self.end((hidden[:, None] @ self.heads[task])[:, 0])


def told_benchmark(norm: bool = False) -> twofold.Benchmark:
    """Domain-incremental, with the task in the first entry of the inputs."""
    random = torch.Generator().manual_seed(0)

    def part(task: int, count: int) -> tuple[Tensor, Tensor]:
        y = torch.arange(count) % 3
        x = torch.eye(8)[y + task + 1] + 0.3 * torch.randn(count, 8, generator=random)
        return torch.cat([torch.full((count, 1), float(task)), x[:, 1:]], 1), y

    tasks = [(*part(k, 60), *part(k, 30)) for k in range(3)]
    return twofold.Benchmark.from_tensors("told", tasks, model=lambda: Told(norm))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("er+gem", {"diagnose": True}),
        ("er+agem+lpr(every=2)", {}),
        ("gem+ewc(1)", {}),
        ("joint", {}),
        ("derpp(augment=none)", {"memory": "herding(30)"}),
        ("er+sam", {"validation": 0.2, "eval_schedule": "exact-min"}),
        ("er+nmc(20)", {"memory": "reservoir(40)", "eval_precision": "bf16"}),
    ],
)
@pytest.mark.parametrize("norm", [False, True])
def test_a_network_gets_the_ids_of_its_examples_everywhere(method, options, norm):
    benchmark = told_benchmark(norm)
    training, result = trained(method, benchmark=benchmark, scenario="task", **options)
    assert len(result.task_ends) == 3
    assert training.net.takes_task


def test_ids_follow_the_example_and_not_the_task_being_learned():
    benchmark = class_benchmark()
    first, second, third = benchmark.tasks
    returning = dataclasses.replace(benchmark, tasks=(first, second, third, first))
    train = in_scenario(returning, "task").train
    ids = train.batch(np.concatenate([third.train[:2], first.train[:2], second.train[:1]])).tasks
    assert ids.tolist() == [2, 2, 0, 0, 1]


def test_a_resumed_run_is_the_same(tmp_path):
    one, other = (
        training_of("der(augment=none)+distil", scenario="task", iterations=4) for _ in range(2)
    )
    untouched, resumed = run_and_resume(one, other, tmp_path / "checkpoint")
    assert np.array_equal(untouched.curves["loss"], resumed.curves["loss"])
    assert untouched.task_ends == resumed.task_ends


def test_tasks_of_the_same_classes_train_as_ever():
    one, other = (
        trained("er+gem", benchmark=domain_benchmark(), scenario=scenario)[1].curves
        for scenario in (None, "task")
    )
    for name, column in one.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)


def test_the_own_scenario_is_the_default_and_a_different_one_makes_a_different_run():
    for benchmark, own in ((class_benchmark(), "class"), (domain_benchmark(), "domain")):
        plain, named, task = (
            twofold.configure(benchmark, "er", scenario=scenario)
            for scenario in (None, own, "task")
        )
        assert plain.identity() == named.identity() != task.identity()
        assert plain.scenario is None


def test_a_benchmark_may_be_task_incremental_by_itself():
    own = dataclasses.replace(class_benchmark(), scenario="task")
    one, other = (
        twofold.configure(each, "er", scenario=s)
        for each, s in ((own, None), (class_benchmark(), "task"))
    )
    assert one.identity() == other.identity()
    with pytest.raises(UserError, match="the scenario of class-toy is task, not class"):
        twofold.configure(own, "er", scenario="class")


def test_no_table_and_no_figure_mixes_scenarios():
    options = {"batch_size": 8, "iterations": 2, "eval_size": 5}
    runs = [twofold.run(class_benchmark(), "er", **options, scenario=s) for s in (None, "task")]
    assert [len(group.runs) for group in groups(runs)] == [1, 1]
    with pytest.raises(UserError, match="er's runs differ in scenario"):
        method_groups(runs)


MISTAKES = {
    "no ids": (
        {"benchmark": dataclasses.replace(class_benchmark(), task_ids=False), "scenario": "task"},
        "scenario task needs the task of every example, which class-toy does not give",
    ),
    "class": (
        {"benchmark": domain_benchmark(), "scenario": "class"},
        "the scenario of domain-toy is domain or task, not class",
    ),
    "domain": (
        {"scenario": "domain"},
        "the scenario of class-toy is class or task, not domain",
    ),
    "an unknown one": ({"scenario": "tasks"}, "unknown value of scenario 'tasks'"),
    "bic": ({"method": "bic", "scenario": "task"}, "not a task-incremental one"),
    "er-ace": ({"method": "er-ace", "scenario": "task"}, "not a task-incremental one"),
    "a network that needs ids": (
        {"benchmark": told_benchmark()},
        "the network needs the ids of tasks: set scenario to task",
    ),
    "distil": (
        {"benchmark": told_benchmark(), "method": "er+distil", "scenario": "task"},
        "distil compares the outputs of past tasks",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_what_makes_no_sense_is_refused_in_one_line(kind):
    given, message = MISTAKES[kind]
    given = {"benchmark": class_benchmark(), "method": "er", "batch_size": 8} | given
    with pytest.raises(UserError, match=message) as caught:
        twofold.run(**given)
    assert "\n" not in str(caught.value)


def test_an_objective_that_forgets_the_ids_is_told():
    class Forgetful(twofold.objectives.Finetune):
        def passes(self, draw):
            return [[term._replace(tasks=None) for term in terms] for terms in super().passes(draw)]

    training = training_of("finetune", scenario="task")
    training.objective.__class__ = Forgetful
    with pytest.raises(UserError, match=r"scenario task, .*Term\(role, weight, x, loss, batch"):
        training.run()


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["rotated-mnist", "domain-cifar100", "split-cifar100"])
def test_the_benchmarks_of_the_package_have_task_ids(need, name):
    recipe = Recipe.find(name)
    need(recipe.dataset)
    benchmark = in_scenario(recipe.build(142), "task")
    own = own_outputs(benchmark, 100)
    for number, task in enumerate(benchmark.tasks):
        for pool, rows in ((benchmark.train, task.train), (benchmark.test, task.test)):
            batch = pool.batch(rows[:: len(rows) // 50])
            assert set(batch.tasks.tolist()) == {number}
            assert own[batch.tasks, batch.y].all()
    assert own.sum(1).tolist() == [len(task.classes) for task in benchmark.tasks]
