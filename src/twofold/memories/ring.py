"""A ring buffer per class (Lopez-Paz and Ranzato, 2017): the examples seen last."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.benchmarks.base import Rows
from twofold.memories.balanced import Balanced


@dataclass
class Ring(Balanced, name="ring"):
    """The examples of each class that were seen last.

    size: examples in all (2000 without a quota); a class with too few leaves its places to the
        others.
    per_class: examples of each class, instead of a size.
    """

    def rank(self, rows: Rows) -> Rows:
        return self.arrival
