"""A quota of examples per class over all tasks: new tasks displace old ones (D1)."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.benchmarks.base import Rows
from twofold.memories.per_class_task import PerClassTask


@dataclass
class PerClass(PerClassTask, name="per-class"):
    """A quota of random examples per class over all tasks (the authors' code, D1).

    per_class: examples of a class. Where tasks share a class, new tasks displace old ones, as in a
        reservoir.
    """

    def keep(self, rows: Rows) -> Rows:
        return self.first(rows, self.per_class, each=self.labels)
