"""Tasks in a different order, with returns, and as parts of the same data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import trained
from hypothesis import given
from hypothesis import strategies as st

from twofold.benchmarks.arrangement import arranged, divided
from twofold.errors import UserError
from twofold.settings import Settings

BENCHMARK = class_benchmark()


def settings(**options) -> Settings:
    return Settings(**({"seed": 3} | options))


@given(parts=st.integers(1, 180), seed=st.integers(0, 1000))
def test_parts_are_disjoint_equal_and_cover_the_data(parts, seed):
    tasks = divided(BENCHMARK, parts, seed).tasks
    sizes = [len(task.train) for task in tasks]
    assert len(tasks) == parts
    assert max(sizes) - min(sizes) <= 1
    assert sorted(np.concatenate([task.train for task in tasks])) == list(range(180))
    assert all(task.test is tasks[0].test for task in tasks)
    assert len(tasks[0].test) == 90
    assert all(task.classes == tuple(range(9)) for task in tasks)
    assert all((np.diff(task.train) > 0).all() for task in tasks)  # rows keep their order


def test_parts_differ_between_seeds_and_are_random():
    one, other = (divided(BENCHMARK, 2, seed).tasks[0].train for seed in (0, 1))
    assert not np.array_equal(one, other)
    labels = BENCHMARK.train.labels.numpy()[one]
    assert set(labels) == set(range(9))  # a random half of 20 per class has all classes


def test_parts_of_chosen_tasks_only():
    tasks = arranged(BENCHMARK, settings(order="2", parts=4)).tasks
    rows = np.concatenate([task.train for task in tasks])
    assert sorted(rows) == BENCHMARK.tasks[1].train.tolist()
    assert tasks[0].classes == (3, 4, 5)
    assert sorted(tasks[0].test) == BENCHMARK.tasks[1].test.tolist()


def test_parts_share_their_classes_so_they_are_domain_incremental():
    assert arranged(BENCHMARK, settings(parts=2)).scenario == "domain"
    assert arranged(BENCHMARK, settings(order="3,1")).scenario == "class"


def test_more_parts_than_examples():
    with pytest.raises(UserError) as caught:
        divided(BENCHMARK, 181, 0)
    assert str(caught.value) == (
        "class-toy can't be divided into 181 parts: it has 180 training examples"
    )


def test_an_order_names_tasks_and_a_return_is_the_same_task():
    tasks = arranged(BENCHMARK, settings(order="3,1,3")).tasks
    assert tasks[0] is BENCHMARK.tasks[2]
    assert tasks[1] is BENCHMARK.tasks[0]
    assert tasks[2] is tasks[0]


def test_a_return_holds_the_same_examples_out():
    tasks = arranged(BENCHMARK, settings(order="1,2,1", validation=0.2)).tasks
    assert tasks[2] is tasks[0]
    assert not np.isin(tasks[0].test, tasks[0].train).any()


def test_parts_are_trained_and_evaluated_on_one_test_set():
    training, result = trained("er", benchmark=domain_benchmark(), parts=3)
    assert len(training.tasks) == 3
    for row in result.task_ends:
        assert len(set(row)) == 1
    table = np.stack([result.curves[f"accuracy_{k}"] for k in (1, 2, 3)], 1)
    last = table[result.curves["task"] == 3]
    assert (last == last[:, :1]).all()


def test_the_usual_order_gives_the_usual_weights():
    (plain, first), (ordered, second) = (
        trained("er+gem", order=order) for order in (None, "1,2,3")
    )
    assert torch.equal(plain.net.values, ordered.net.values)
    assert first.task_ends == second.task_ends
    for name, column in first.curves.items():
        assert np.array_equal(column, second.curves[name], equal_nan=True), name
