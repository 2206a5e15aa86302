"""Class-incremental splits: the classes in a random order, cut into tasks of equal size."""

from __future__ import annotations

import numpy as np

from twofold.benchmarks.base import Images, Recipe, Rows, Task
from twofold.datasets import Dataset
from twofold.datasets.statistics import as_tensor


def class_order(seed: int) -> Rows:
    """Return the order of 100 classes for a seed, as numpy's legacy generator draws it."""
    return np.random.RandomState(seed).permutation(100)


class ClassSplit(Recipe):
    """A benchmark whose tasks are groups of classes; outputs keep the dataset's class numbers."""

    scenario = "class"

    @classmethod
    def divide(cls, data: Dataset, seed: int) -> tuple[Images, Images, list[Task]]:
        tasks = [
            Task(
                np.flatnonzero(np.isin(data.train.labels, classes)),
                np.flatnonzero(np.isin(data.test.labels, classes)),
                tuple(int(c) for c in classes),
            )
            for classes in np.split(class_order(seed), cls.tasks)
        ]
        train, test = (
            Images(as_tensor(s.images), as_tensor(s.labels)) for s in (data.train, data.test)
        )
        return train, test, tasks
