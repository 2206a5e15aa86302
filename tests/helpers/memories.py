"""Streams of labelled examples for memories, without a network."""

from __future__ import annotations

import numpy as np
import torch

from twofold.benchmarks import Task
from twofold.memories import Memory
from twofold.streams import stream

NONE = np.empty(0, np.int64)


def stream_of(labels: np.ndarray, tasks: int) -> list[Task]:
    """Divide rows evenly into tasks."""
    parts = np.array_split(np.arange(len(labels)), tasks)
    return [Task(part, NONE, tuple(np.unique(labels[part]).tolist())) for part in parts]


def shown(
    memory: Memory, labels: np.ndarray, tasks: int = 3, batch: int = 4, seed: int = 0
) -> list[list[np.ndarray]]:
    """Show a memory all examples in random order; return its parts after every batch."""
    points = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(labels), 5)))
    memory.start(labels, lambda rows: points[rows])
    history = []
    for number, task in enumerate(stream_of(labels, tasks), 1):
        memory.choose(task, stream(seed, "memory", number))
        order = np.random.default_rng([seed, number]).permutation(task.train)
        for rows in np.array_split(order, range(batch, len(order), batch)):
            memory.see(number, rows)
            history.append([part.copy() for part in memory.parts])
        if not memory.current:
            memory.add(number, memory.seen(number, task.train))
            history.append([part.copy() for part in memory.parts])
    return history
