"""The validation split: drawn from training images alone, per class and task, from the seed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import trained, training_of

from twofold import UserError
from twofold.benchmarks.validation import validating


@pytest.mark.parametrize("made", [class_benchmark, domain_benchmark])
def test_each_class_of_each_task_loses_its_share(made):
    whole = made()
    split = validating(whole, 0.2, seed=0)
    labels = whole.train.labels.numpy()
    for before, after in zip(whole.tasks, split.tasks, strict=True):
        assert sorted([*after.train, *after.test]) == sorted(before.train)
        for label in before.classes:
            share = (labels[after.test] == label).sum() / (labels[before.train] == label).sum()
            assert share == 0.2
    assert split.test is whole.train


def test_the_split_is_a_function_of_the_seed():
    one, same, other = (
        validating(domain_benchmark(), 0.2, seed).tasks[0].test for seed in (0, 0, 1)
    )
    assert (one == same).all()
    assert set(one) != set(other)


def test_tasks_of_the_same_images_hold_the_same_ones_out():
    tasks = validating(domain_benchmark(examples=60), 0.2, seed=0).tasks
    assert (tasks[0].test + 60 == tasks[1].test).all()


def test_a_run_trains_on_the_rest_and_evaluates_what_is_held_out():
    training, result = trained("er", benchmark=domain_benchmark(), validation=0.2)
    held = np.concatenate([task.test for task in training.benchmark.tasks])
    assert not set(held) & set(np.concatenate(training.memory.parts))
    correct = np.array(result.task_ends[-1]) / 100 * len(held) / 3
    assert np.allclose(correct, correct.round(), atol=1e-4)  # shares of 12 images, not of 30


def test_without_it_a_run_stays_as_it_is():
    one, other = (
        trained("er", **options)[1].curves["loss"] for options in ({}, {"validation": 0.0})
    )
    assert (one == other).all()


def test_a_share_that_holds_nothing_out_is_refused():
    with pytest.raises(UserError, match=r"validation 0\.001 holds no image of task 1 out"):
        training_of("er", validation=0.001)
