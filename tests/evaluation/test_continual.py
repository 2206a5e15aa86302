"""The evaluator: which images, when, in which precision, and what audits find."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.precision import needs_bf16
from torch import nn

from twofold import Benchmark, run
from twofold.benchmarks import Batch
from twofold.evaluation import continual, predictors
from twofold.evaluation.continual import Evaluator
from twofold.evaluation.metrics import (
    average_minimum_accuracy,
)
from twofold.evaluation.predictors import Audit
from twofold.experiments import checkpoints
from twofold.method import Method
from twofold.models import FlatModel, mlp
from twofold.settings import Settings
from twofold.training import Training, initialised


def hard_benchmark(norm: bool = True) -> Benchmark:
    """Classes that overlap, so that accuracies lie between 0 and 100."""
    random = torch.Generator().manual_seed(0)

    def points(task: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.arange(count) % 3 + 3 * task
        return 1.5 * torch.eye(9)[y] + torch.randn(count, 9, generator=random), y

    def model() -> nn.Module:
        layer = nn.BatchNorm1d(32) if norm else nn.Identity()
        return nn.Sequential(nn.Linear(9, 32), layer, nn.ReLU(), nn.Linear(32, 9))

    tasks = [(*points(k, 300), *points(k, 1300)) for k in range(3)]
    return Benchmark.from_tensors("hard", tasks, model=model)


def trained(benchmark, **options) -> tuple[Training, object]:
    objective, routines = Method.parse("er").make()
    options = {"lr": 0.05, "batch_size": 20, "iterations": 10} | options
    training = Training(benchmark, objective, routines, Settings(seed=0, **options))
    return training, training.run()


def whole(training: Training) -> list[float]:
    """Accuracies on the whole test sets, all images of a task at once."""
    module, test = training.net.copy(), training.benchmark.test
    results = []
    for task in training.benchmark.tasks:
        x, y, *_ = test.batch(task.test)
        results.append(100 * sum((module(x).argmax(1) == y).tolist()) / len(y))
    return results


@pytest.mark.parametrize("norm", [False, True])
def test_avg_is_over_the_whole_test_sets_and_min_over_the_subsets(norm):
    benchmark = hard_benchmark(norm)
    training, result = trained(benchmark, eval_size=7)
    assert result.task_ends[-1] == pytest.approx(whole(training))
    assert [len(accuracies) for accuracies in result.task_ends] == [1, 2, 3]
    last = [result.curves[f"accuracy_{k}"][-1] for k in (1, 2, 3)]
    sevenths = np.array(last) * 7 / 100
    np.testing.assert_allclose(sevenths, sevenths.round(), atol=1e-4)
    assert last != pytest.approx(result.task_ends[-1])

    finished = run(benchmark, "er", seed=0, lr=0.05, batch_size=20, iterations=10, eval_size=7)
    assert finished.avg == pytest.approx(np.mean(whole(training)))
    table = np.stack([result.curves[f"accuracy_{k}"] for k in (1, 2, 3)], 1)
    assert finished.min == pytest.approx(average_minimum_accuracy(result.curves["task"], table))


def test_whole_test_sets_give_the_subset_curve_its_end():
    training, result = trained(hard_benchmark(), eval_size=2000)
    last = [result.curves[f"accuracy_{k}"][-1] for k in (1, 2, 3)]
    assert last == pytest.approx(whole(training))


def test_seldom_evaluation_leaves_gaps_but_always_sees_the_ends_of_tasks():
    _, often = trained(hard_benchmark(), iterations=5)
    _, seldom = trained(hard_benchmark(), iterations=5, eval_schedule="every:3")
    evaluated = ~np.isnan(seldom.curves["accuracy_1"])
    assert evaluated.tolist() == 3 * [False, False, True, False, True]
    for k in (1, 2, 3):
        a, b = (result.curves[f"accuracy_{k}"][evaluated] for result in (often, seldom))
        np.testing.assert_array_equal(a, b)
    assert seldom.task_ends == often.task_ends


def test_tasks_are_evaluated_from_their_own_first_update_on():
    _, result = trained(hard_benchmark(), iterations=5)
    for k in (1, 2, 3):
        column = result.curves[f"accuracy_{k}"]
        assert np.array_equal(np.isnan(column), result.curves["task"] < k)


def test_the_subset_is_drawn_once_for_each_task():
    benchmark = hard_benchmark()
    net = initialised(benchmark, 0, torch.device("cpu"))
    requests: list[list[int]] = []
    draw = benchmark.test.batch
    benchmark.test.batch = lambda rows: (requests.append(list(map(int, rows))), draw(rows))[1]
    evaluator = Evaluator(benchmark, net, 7, seed=0)
    first = evaluator.subset(3, lambda logits: logits)
    assert torch.equal(first, evaluator.subset(3, lambda logits: logits))
    assert torch.equal(first[:2], evaluator.subset(2, lambda logits: logits))
    drawn = [rows for rows in requests if len(rows) == 7]
    assert [len(set(rows)) for rows in drawn] == [7, 7, 7]
    for rows, task in zip(drawn, benchmark.tasks, strict=True):
        assert set(rows) <= set(task.test)
    requests.clear()
    Evaluator(benchmark, net, 7, seed=1).subset(3, lambda logits: logits)
    assert [rows for rows in requests if len(rows) == 7] != drawn


def test_evaluation_leaves_the_network_as_it_was():
    benchmark = hard_benchmark()
    net = initialised(benchmark, 0, torch.device("cpu"))
    net(benchmark.train.batch(np.arange(20)).x)
    before = {key: value.clone() for key, value in net.module.state_dict().items()}
    evaluator = Evaluator(benchmark, net, 7, seed=0)
    evaluator.subset(3, lambda logits: logits)
    evaluator.full(3, lambda logits: logits)
    for key, value in net.module.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert net.module.training


def identity(logits: torch.Tensor) -> torch.Tensor:
    return logits


def audited(quick: list[int], sure: list[int], times: int) -> tuple[Audit, list[list[float]]]:
    """An evaluator of two tasks with these predictions of two images each, of class 0."""
    evaluator = Evaluator(domain_benchmark(), FlatModel(mlp()), 2, seed=0, precision="bf16")
    labels = torch.zeros(2, dtype=torch.long)
    evaluator._kept = {task: Batch(torch.zeros(2, 784), labels, labels) for task in (0, 1)}
    evaluator._exact = lambda x, scores, tasks: torch.tensor(sure)
    evaluator._copy = Said(torch.tensor(quick))
    return evaluator.audit, [evaluator.subset(2, identity).tolist() for _ in range(times)]


class Said:
    """Always predicts the same."""

    margin = 0.0

    def __init__(self, predicted: torch.Tensor) -> None:
        self.predicted = predicted

    def __call__(self, x, scores, tasks) -> torch.Tensor:
        return self.predicted


def test_an_audit_counts_differences_and_doubles_the_margin(monkeypatch):
    monkeypatch.setattr(predictors, "AUDIT_EVERY", 3)
    audit, accuracies = audited(quick=[0, 1], sure=[0, 0], times=7)
    assert audit == Audit(evaluations=7, audits=3, images=12, differences=6, margin=0.08)
    right, wrong = [100.0, 100.0], [50.0, 50.0]  # an audited evaluation is right
    assert accuracies == [right, wrong, wrong, right, wrong, wrong, right]


def test_an_audit_that_finds_nothing_leaves_the_margin():
    audit, _ = audited(quick=[0, 1], sure=[0, 1], times=1)
    assert audit == Audit(evaluations=1, audits=1, images=4, differences=0, margin=0.01)


@needs_bf16
def test_where_two_weights_are_evaluated_both_are_audited(monkeypatch):
    """They are one evaluation: an audit of every second would else see the first alone."""
    monkeypatch.setattr(predictors, "AUDIT_EVERY", 2)
    settings = Settings(
        lr=0.05, batch_size=10, seed=0, iterations=3, tasks=1, eval_precision="bf16"
    )
    training = Training(class_benchmark(), *Method.parse("er+ema(0.9)").make(), settings)
    looked_at = []
    sure = training.evaluator._exact

    def watched(x, scores, tasks=None):
        if len(x) == 30:  # all of a test set, not what is close in it
            looked_at.append(training.net.values.clone())
        return sure(x, scores)

    training.evaluator._exact = watched
    audit = training.run().audit
    assert (audit["evaluations"], audit["audits"], audit["images"]) == (3, 2, 2 * 2 * 30)
    *audited, full, raw = looked_at
    assert len(audited) == 4
    assert not torch.equal(audited[2], audited[3])  # the average, and the weights themselves
    assert torch.equal(audited[2], full)
    assert torch.equal(audited[3], raw)


class Indexed(nn.Module):
    """Takes whole numbers, which bf16 would round."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.linear = nn.Embedding(1000, 8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.embedding(x.long()).mean(1))


def test_where_bf16_is_far_off_fp32_is_taken():
    torch.manual_seed(0)
    task = torch.randint(1000, (60, 4)).float(), torch.arange(60) % 5
    benchmark = Benchmark.from_tensors("indexed", [(*task, *task)], model=Indexed)
    net = FlatModel(Indexed())
    evaluators = [Evaluator(benchmark, net, 60, 0, precision) for precision in ("fp32", "bf16")]
    default, quick = (evaluator.subset(1, identity) for evaluator in evaluators)
    assert torch.equal(default, quick)
    assert evaluators[1].state() == {}  # nothing is left to audit


@needs_bf16
@pytest.mark.parametrize("benchmark", [class_benchmark, domain_benchmark], ids=["class", "domain"])
def test_a_run_in_bf16_trains_alike_and_records_its_audits(benchmark):
    options = {"batch_size": 16, "iterations": 12, "eval_size": 30}
    default = run(benchmark(norm=True), "er", **options)
    quick = run(benchmark(norm=True), "er", **options, eval_precision="bf16")
    assert np.array_equal(quick.columns["loss"], default.columns["loss"])
    assert quick.avg == default.avg
    assert np.nanmax(np.abs(quick.accuracy - default.accuracy)) <= 100 / 30 + 1e-4  # one image
    audit = quick.summary["audit"]
    assert audit["evaluations"] == len(quick.columns["task"])
    assert (audit["audits"], audit["images"]) == (1, 30)
    assert "audit" not in default.summary


@needs_bf16
def test_what_audits_have_found_survives_a_checkpoint(tmp_path):
    def training() -> Training:
        settings = Settings(lr=0.05, batch_size=10, seed=0, iterations=6, eval_precision="bf16")
        return Training(class_benchmark(), *Method.parse("er").make(), settings)

    untouched, stopped = training(), training()
    untouched.evaluator.audit.margin = stopped.evaluator.audit.margin = 0.32
    path = tmp_path / "checkpoint.pt"

    def every() -> None:
        if (stopped.task, stopped.n) == (2, 3):
            checkpoints.write(path, stopped.state())

    stopped.run(every)
    resumed = training()
    resumed.restore(checkpoints.read(path))
    result, whole = resumed.run(), untouched.run()
    assert result.audit == whole.audit
    assert (result.audit["evaluations"], result.audit["margin"]) == (18, 0.32)


def timed(monkeypatch, fp32: float, bf16: float) -> None:
    monkeypatch.setattr(continual, "times", lambda *_: {"fp32": fp32, "bf16": bf16})


@needs_bf16
@pytest.mark.parametrize(("fp32", "bf16", "chosen"), [(1, 4, "fp32"), (2, 1, "bf16")])
def test_auto_takes_the_faster_precision_and_records_it(fp32, bf16, chosen, monkeypatch):
    timed(monkeypatch, fp32, bf16)
    asked, auto = (
        run(hard_benchmark(), "er", iterations=5, batch_size=20, eval_precision=precision)
        for precision in (chosen, "auto")
    )
    seconds = {"fp32": fp32, "bf16": bf16}
    assert auto.summary["precision"] == {"precision": chosen, "seconds": seconds}
    assert auto.summary.get("audit") == asked.summary.get("audit")
    for name in asked.columns:
        np.testing.assert_array_equal(auto.columns[name], asked.columns[name], err_msg=name)


def test_auto_takes_fp32_where_bf16_is_wrong(monkeypatch):
    monkeypatch.setattr(continual, "rounded", lambda *_: None)
    wrong = run(hard_benchmark(), "er", iterations=2, batch_size=20, eval_precision="auto")
    assert wrong.summary["precision"] == {"precision": "fp32", "seconds": {}}


@pytest.mark.parametrize("precision", ["bf16", "auto"])
def test_fp32_is_taken_where_the_processor_cannot_compute_in_bf16(precision, monkeypatch):
    monkeypatch.setattr(predictors, "bf16_works", lambda: False)
    options = {"iterations": 3, "batch_size": 20}
    default = run(hard_benchmark(), "er", **options)
    other = run(hard_benchmark(), "er", **options, eval_precision=precision)
    chosen = {"precision": "fp32", "seconds": {}} if precision == "auto" else None
    assert (other.summary.get("precision"), other.summary.get("audit")) == (chosen, None)
    for name in default.columns:
        np.testing.assert_array_equal(other.columns[name], default.columns[name], err_msg=name)


@needs_bf16
def test_predictions_that_differ_are_not_timed():
    net = initialised(hard_benchmark(), 0, torch.device("cpu"))
    x = hard_benchmark().test.images[:50]
    sure = predictors.exact(net, x)
    quick = predictors.rounded(net, x, sure)
    assert predictors.times(quick, sure, x).keys() == {"fp32", "bf16"}
    assert predictors.times(quick, lambda x, scores, _: 1 - sure(x, scores), x) == {}


@needs_bf16
def test_a_run_keeps_its_precision_on_another_processor(tmp_path, monkeypatch):
    timed(monkeypatch, 2, 1)
    benchmark, options = hard_benchmark(), {"eval_precision": "auto", "iterations": 5}
    training = Training(
        benchmark, *Method.parse("er").make(), Settings(seed=0, batch_size=20, lr=0.05, **options)
    )

    def every() -> None:
        if (training.task, training.n) == (2, 2):
            checkpoints.write(tmp_path / "checkpoint.pt", training.state())

    first = training.run(every)
    timed(monkeypatch, 1, 2)
    resumed = Training(
        benchmark, *Method.parse("er").make(), Settings(seed=0, batch_size=20, lr=0.05, **options)
    )
    resumed.restore(checkpoints.read(tmp_path / "checkpoint.pt"))
    second = resumed.run()
    assert (first.precision, first.audit) == (second.precision, second.audit)
    assert second.precision["precision"] == "bf16"
