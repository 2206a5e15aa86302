"""The paper's memory: a number of examples of each class of each task, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.benchmarks.base import Rows
from twofold.component import require
from twofold.memories.base import Memory

QUOTA = 100  # the paper's


@dataclass
class PerClassTask(Memory, name="per-class-task"):
    """A quota of random examples per class of each task (the paper).

    per_class: examples of a class in a task.
    """

    per_class: int = QUOTA

    ahead = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.per_class >= 0, f"{self.name}'s per_class must be at least 0, not {self.per_class}"
        )

    def quota(self) -> int:
        return self.per_class

    def keep(self, rows: Rows) -> Rows:
        groups = self.task_of * (1 + np.max(self.labels, initial=0)) + self.labels
        return self.first(rows, self.per_class, each=groups)
