"""Class-incremental splits: which classes are in which task."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.benchmarks import Recipe
from twofold.benchmarks.splitting import class_order
from twofold.datasets import load

# What the authors' code draws: the first task of split-cifar100 for the paper's five seeds.
FIRST_TASKS = {
    142: (25, 61, 42, 33, 81, 68, 6, 7, 54, 94),
    152: (61, 37, 89, 76, 10, 46, 84, 32, 75, 38),
    162: (31, 40, 67, 21, 0, 88, 90, 93, 41, 20),
    172: (17, 56, 35, 15, 96, 30, 24, 75, 39, 0),
    182: (76, 81, 58, 20, 97, 47, 59, 40, 93, 56),
}


@pytest.mark.parametrize("seed", FIRST_TASKS)
def test_class_order_is_the_authors(seed):
    order = class_order(seed)
    assert tuple(order[:10]) == FIRST_TASKS[seed]
    assert sorted(order) == list(range(100))


def test_the_order_of_classes_leaves_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()
    class_order(142)
    assert np.array_equal(np.random.get_state()[1], before)


def test_split_cifar100(images):
    data = load("cifar100", images("cifar100"))
    each = len(data.train.labels) // 10, len(data.test.labels) // 10
    for seed, first in FIRST_TASKS.items():
        _, _, tasks = Recipe.find("split-cifar100").divide(data, seed)
        assert tasks[0].classes == first
        assert [(len(t.train), len(t.test)) for t in tasks] == 10 * [each]
        assert sorted(c for task in tasks for c in task.classes) == list(range(100))
