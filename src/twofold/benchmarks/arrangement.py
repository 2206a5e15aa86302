"""The tasks of a benchmark in a different order, with returns, or as parts of the same data."""

from __future__ import annotations

import dataclasses

import numpy as np

from twofold.benchmarks.base import Benchmark, Task
from twofold.benchmarks.validation import validating
from twofold.errors import UserError
from twofold.sequence import read_order
from twofold.settings import Settings
from twofold.streams import stream


def arranged(benchmark: Benchmark, settings: Settings) -> Benchmark:
    """Return the benchmark as its tasks are trained and evaluated with these settings.

    A task that returns is the same object at each of its places.
    """
    if settings.validation:
        benchmark = validating(benchmark, settings.validation, settings.seed)
    if settings.order:
        places = read_order(settings.order) or []
        benchmark = dataclasses.replace(
            benchmark, tasks=tuple(benchmark.tasks[place - 1] for place in places)
        )
    return divided(benchmark, settings.parts, settings.seed) if settings.parts else benchmark


def divided(benchmark: Benchmark, parts: int, seed: int) -> Benchmark:
    """Return a benchmark whose tasks are random equal parts of the data of all tasks.

    Sizes differ by one example at most. Rows keep their order within a part. All parts share one
    test set, the one of all tasks together, so they share their classes as well.
    """
    rows = np.concatenate([task.train for task in benchmark.tasks])
    test = np.concatenate([task.test for task in benchmark.tasks])
    if parts > len(rows):
        raise UserError(
            f"{benchmark.name} can't be divided into {parts:,} parts: it has {len(rows):,} "
            "training examples"
        )
    classes = tuple(sorted({c for task in benchmark.tasks for c in task.classes}))
    places = stream(seed, "parts").permutation(len(rows))
    tasks = [Task(rows[np.sort(part)], test, classes) for part in np.array_split(places, parts)]
    return dataclasses.replace(benchmark, scenario="domain", tasks=tuple(tasks))
