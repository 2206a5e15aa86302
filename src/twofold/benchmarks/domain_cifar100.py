"""Domain CIFAR-100: each task has one member of each super-class; domain-incremental."""

from __future__ import annotations

import numpy as np
from torch import nn

from twofold.benchmarks.base import Images, Recipe, Rows, Sizes, Task
from twofold.datasets import Dataset, Split
from twofold.datasets.statistics import as_tensor
from twofold.models import reduced_resnet18


def task_of_class(fine: Rows, coarse: Rows, seed: int) -> Rows:
    """Return the task (0..4) of each fine class for a seed, as numpy's legacy generator draws it.

    A fine class has a rank among the five classes of its super-class. Each super-class, in order,
    gets a random permutation of these ranks, which gives the tasks.
    """
    random = np.random.RandomState(seed)
    task = np.empty(100, np.int64)
    for superclass in range(20):
        members = np.unique(fine[coarse == superclass])
        task[members] = random.permutation(5)
    return task


class DomainCifar100(Recipe, name="domain-cifar100"):
    title = "Domain CIFAR-100"
    about = "5 tasks, each with one member of each of the 20 super-classes; reduced ResNet-18"
    dataset = "cifar100"
    scenario = "domain"
    tasks = 5
    offline_iterations = 800
    augmentation = "crop"
    published_sizes = Sizes(train=10_000, test=2_000, classes=20, image=(3, 32, 32))
    checked_share = 0.35
    published_whitening = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # ImageNet's

    @classmethod
    def model(cls) -> nn.Module:
        return reduced_resnet18(20)

    @classmethod
    def divide(cls, data: Dataset, seed: int) -> tuple[Images, Images, list[Task]]:
        task = task_of_class(data.train.labels, _coarse(data.train), seed)
        tasks = [
            Task(
                np.flatnonzero(task[data.train.labels] == k),
                np.flatnonzero(task[data.test.labels] == k),
                tuple(range(20)),
            )
            for k in range(cls.tasks)
        ]
        train, test = (
            Images(as_tensor(s.images), as_tensor(_coarse(s))) for s in (data.train, data.test)
        )
        return train, test, tasks


def _coarse(split: Split) -> Rows:
    assert split.coarse is not None, "CIFAR-100 has super-classes"
    return split.coarse
