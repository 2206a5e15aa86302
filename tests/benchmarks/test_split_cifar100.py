"""Split CIFAR-100, from small images and from the real ones."""

from __future__ import annotations

import numpy as np

from twofold import Benchmark
from twofold.benchmarks import Recipe


def assert_whitened(benchmark: Benchmark, step: int) -> None:
    x = benchmark.train.batch(np.arange(0, len(benchmark.train), step)).x
    assert x.mean((0, 2, 3)).abs().max() < 0.03
    assert (x.std((0, 2, 3)) - 1).abs().max() < 0.03


def test_split_cifar100_is_built_with_its_own_classes(images):
    benchmark = Recipe.find("split-cifar100").build(142, images("cifar100"))
    assert benchmark.scenario == "class"
    for task in benchmark.tasks:
        for pool, rows, each in (
            (benchmark.train, task.train, len(benchmark.train) // 100),
            (benchmark.test, task.test, len(benchmark.test) // 100),
        ):
            classes, counts = pool.labels[rows].unique(return_counts=True)
            assert tuple(classes.tolist()) == tuple(sorted(task.classes))
            assert (counts == each).all()
    rows = np.concatenate([task.train for task in benchmark.tasks])
    assert len(np.unique(rows)) == len(benchmark.train)
    assert_whitened(benchmark, step=max(1, len(benchmark.train) // 5000))
