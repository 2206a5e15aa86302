"""MIN and AVG on curves worked out by hand, and on runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from torch import nn

from twofold import Benchmark, run
from twofold.evaluation.continual import Evaluator
from twofold.evaluation.metrics import (
    average_accuracy,
    average_minimum_accuracy,
    minimum_accuracies,
)
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training, initialised

NAN = np.nan
#   task, accuracy on tasks 1, 2, 3
HAND = [
    (1, 5.0, NAN, NAN),  # learning the task itself: does not count
    (1, 90.0, NAN, NAN),
    (2, 60.0, 10.0, NAN),  # the first update of the next task does
    (2, 70.0, 20.0, NAN),
    (2, 80.0, 40.0, NAN),  # the end of its own task does not: 40 is below 50
    (3, 75.0, 50.0, 1.0),
    (3, 65.0, 88.0, 2.0),  # the last task has no minimum
]


def hand(rows=HAND) -> tuple[list[int], np.ndarray]:
    return [row[0] for row in rows], np.array([row[1:] for row in rows])


def test_minima_by_hand():
    assert minimum_accuracies(*hand()).tolist() == [60.0, 50.0]
    assert average_minimum_accuracy(*hand()) == 55.0


def test_the_first_update_of_the_next_task_counts_and_the_last_of_the_own_does_not():
    task, accuracy = hand()
    accuracy[1, 0] = 0.0  # end of task 1
    accuracy[4, 1] = 0.0  # end of task 2
    assert minimum_accuracies(task, accuracy).tolist() == [60.0, 50.0]
    accuracy[2, 0] = 3.0  # first update of task 2
    accuracy[5, 1] = 4.0  # first update of task 3
    assert minimum_accuracies(task, accuracy).tolist() == [3.0, 4.0]


def test_the_end_of_training_counts():
    task, accuracy = hand()
    accuracy[-1, :2] = 1.0, 2.0
    assert minimum_accuracies(task, accuracy).tolist() == [1.0, 2.0]


def test_iterations_that_were_not_evaluated_are_passed_over():
    task, accuracy = hand()
    accuracy[[2, 5]] = NAN
    assert minimum_accuracies(task, accuracy).tolist() == [65.0, 88.0]


def test_a_single_task_has_no_minimum():
    assert average_minimum_accuracy([1, 1], [[50.0], [60.0]]) is None
    assert minimum_accuracies([1, 1], [[50.0], [60.0]]).size == 0


def test_average_accuracy_is_the_mean_over_tasks():
    assert average_accuracy([90.0, 60.0, 30.0]) == 60.0


def test_a_run_with_one_task_has_no_minimum():
    finished = run(class_benchmark(), "er", tasks=1, batch_size=10, iterations=2)
    assert finished.min is None
    assert finished.avg > 0


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
    found = []
    for task in training.benchmark.tasks:
        x, y, _ = test.batch(task.test)
        found.append(100 * sum((module(x).argmax(1) == y).tolist()) / len(y))
    return found


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
    asked: list[list[int]] = []
    draw = benchmark.test.batch
    benchmark.test.batch = lambda rows: (asked.append(list(map(int, rows))), draw(rows))[1]
    evaluator = Evaluator(benchmark, net, 7, seed=0)
    first = evaluator.subset(3, lambda logits: logits)
    assert torch.equal(first, evaluator.subset(3, lambda logits: logits))
    assert torch.equal(first[:2], evaluator.subset(2, lambda logits: logits))
    drawn = [rows for rows in asked if len(rows) == 7]
    assert [len(set(rows)) for rows in drawn] == [7, 7, 7]
    for rows, task in zip(drawn, benchmark.tasks, strict=True):
        assert set(rows) <= set(task.test)
    asked.clear()
    Evaluator(benchmark, net, 7, seed=1).subset(3, lambda logits: logits)
    assert [rows for rows in asked if len(rows) == 7] != drawn


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
