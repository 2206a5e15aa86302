"""A validation split: training images that are held out and evaluated instead of test images."""

from __future__ import annotations

import dataclasses

import numpy as np

from twofold.benchmarks.base import Benchmark, Rows, Task
from twofold.errors import UserError
from twofold.streams import stream


def validating(benchmark: Benchmark, fraction: float, seed: int) -> Benchmark:
    """Return the benchmark with this share of each class and task held out of training.

    The held-out images take the place of the test images. The draw does not depend on the task, so
    tasks that show the same images in the same order, as Rotated MNIST does, hold the same ones
    out, and no held-out image is trained on in a different task.
    """
    labels = benchmark.train.labels.cpu().numpy()
    tasks = []
    for number, task in enumerate(benchmark.tasks, 1):
        parts = [_drawn(task, labels, label, fraction, seed) for label in task.classes]
        held = np.sort(np.concatenate(parts))
        kept = task.train[~np.isin(task.train, held)]
        if not len(held):
            raise UserError(f"validation {fraction:g} holds no image of task {number} out")
        tasks.append(Task(kept, held, task.classes))
    return dataclasses.replace(benchmark, test=benchmark.train, tasks=tuple(tasks))


def _drawn(task: Task, labels: Rows, label: int, fraction: float, seed: int) -> Rows:
    rows = task.train[labels[task.train] == label]
    places: Rows = stream(seed, "validation", label).permutation(len(rows))
    drawn: Rows = rows[places[: round(fraction * len(rows))]]
    return drawn
