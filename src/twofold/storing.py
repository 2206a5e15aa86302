"""What enters the memory, and when: as it is seen, or at the end of its task."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from twofold.benchmarks import Batch, Benchmark
from twofold.benchmarks.base import Rows
from twofold.course import Course
from twofold.memories import Memory
from twofold.models import FlatModel
from twofold.models.features import features, head_of
from twofold.objectives import Objective

CHUNK = 500  # examples whose features are computed at once


@dataclass
class Storing:
    """Shows examples to a memory, and tells the objective which of them enter it."""

    memory: Memory
    objective: Objective
    benchmark: Benchmark
    net: FlatModel
    course: Course

    def start(self) -> None:
        # The memory keeps this function. A cycle of references would keep the images of a run until
        # Python looks for cycles, which may be many runs later.
        method = weakref.WeakMethod(self.features)

        def features(rows: Rows) -> Tensor:
            compute = method()
            assert compute is not None  # a run keeps both
            return compute(rows)

        self.memory.start(self.benchmark.train.labels.cpu().numpy(), features)

    def see(self, task: int, batch: Batch) -> None:
        """Show the examples of an iteration."""
        if self.memory.current or not self.memory.ahead:
            entered = self.memory.see(self.course.part(task), batch.rows.cpu().numpy())
            if len(entered):
                self.objective.store(entered)

    def end_task(self, task: int, rows: Rows) -> None:
        """Store examples of a task at its end, unless they are stored as they come.

        What is stored of a task stays as it is when the task returns.

        rows: those that the objective stores, if the choice was made at the start of the task.
        """
        if self.memory.current or (self.memory.ahead and self.course.returns(task)):
            return
        if not self.memory.ahead:
            rows = self.memory.seen(task, self.course.shown(task))
        self.objective.store(rows)
        self.memory.add(task, rows)

    def features(self, rows: Rows) -> Tensor:
        """Return the features of training examples, for a memory that looks at them."""
        head = head_of(self.net, self.memory.name)
        parts = np.array_split(rows, range(CHUNK, len(rows), CHUNK))
        batches = (self.benchmark.train.batch(part) for part in parts)
        return torch.cat([features(self.net, batch.x, head, batch.tasks) for batch in batches])
