"""MIN and AVG on curves worked out by hand."""

from __future__ import annotations

import numpy as np
from helpers.benchmarks import class_benchmark

from twofold import run
from twofold.evaluation.metrics import (
    average_accuracy,
    average_minimum_accuracy,
    minimum_accuracies,
)

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
