"""Split Mini-ImageNet, from small images and from the real ones."""

from __future__ import annotations

import numpy as np
from helpers.benchmarks import assert_published_whitening

from twofold.benchmarks import Recipe
from twofold.benchmarks.splitting import class_order
from twofold.datasets import load


def test_split_mini_imagenet(images):
    folder = images("mini-imagenet")
    data = load("mini-imagenet", folder)
    each = len(data.train.labels) // 100, len(data.test.labels) // 100  # 125 and 25 of the subset
    _, _, tasks = Recipe.find("split-mini-imagenet").divide(data, 142)
    assert len(tasks) == 20
    for task in tasks:
        assert len(task.classes) == 5
        for split, rows, count in (
            (data.train, task.train, each[0]),
            (data.test, task.test, each[1]),
        ):
            assert np.bincount(split.labels[rows])[list(task.classes)].tolist() == 5 * [count]
            assert len(rows) == 5 * count
    assert data.train.images.shape[1:] == (84, 84, 3)
    assert [c for task in tasks for c in task.classes] == list(class_order(142))
    benchmark = Recipe.find("split-mini-imagenet").build(142, folder, whitening="published")
    # CIFAR-10's constants, in the order blue, green, red.
    assert_published_whitening(
        benchmark, data.train.images, (0.4465, 0.4822, 0.4914), (0.2010, 0.1994, 0.2023)
    )
