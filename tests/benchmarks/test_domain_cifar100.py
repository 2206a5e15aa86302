"""Domain CIFAR-100: which classes are in which task."""

from __future__ import annotations

import numpy as np
from helpers.benchmarks import assert_published_whitening

from twofold.benchmarks import Recipe
from twofold.benchmarks.domain_cifar100 import task_of_class
from twofold.datasets import load

# And of domain-cifar100 for seed 142: the tasks of the five members of the first super-classes.
MEMBERS_142 = [[1, 2, 0, 4, 3], [2, 4, 3, 1, 0], [2, 1, 0, 3, 4], [1, 0, 3, 4, 2]]


IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_members_of_super_classes_are_divided_as_the_authors_do():
    fine = np.arange(100)
    coarse = fine % 20  # whichever classes a super-class has, in ascending order
    task = task_of_class(fine, coarse, 142)
    for superclass, expected in enumerate(MEMBERS_142):
        assert task[coarse == superclass].tolist() == expected
    for superclass in range(20):
        assert sorted(task[coarse == superclass]) == [0, 1, 2, 3, 4]


def test_domain_cifar100(images):
    folder = images("cifar100")
    data = load("cifar100", folder)
    benchmark = Recipe.find("domain-cifar100").build(142, folder, whitening="published")
    assert benchmark.scenario == "domain"
    each = len(data.train.labels) // 5, len(data.test.labels) // 5
    assert [(len(t.train), len(t.test)) for t in benchmark.tasks] == 5 * [each]
    fine, coarse = data.train.labels, data.train.coarse
    for task in benchmark.tasks:
        members = np.unique(fine[task.train])
        of = {int(coarse[fine == c][0]) for c in members}
        assert len(members) == len(of) == 20  # one of each super-class
        assert set(np.unique(data.test.labels[task.test])) == set(members)
        assert benchmark.train.labels[task.train].unique().tolist() == list(range(20))
    for superclass, expected in enumerate(MEMBERS_142):
        members = np.unique(fine[coarse == superclass])
        place = [
            next(k for k, task in enumerate(benchmark.tasks) if c in fine[task.train])
            for c in members
        ]
        assert place == expected
    assert_published_whitening(benchmark, data.train.images, *IMAGENET)


def test_dividing_leaves_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()
    task_of_class(np.arange(100), np.arange(100) % 20, 142)
    assert np.array_equal(np.random.get_state()[1], before)
