"""Memories that give every class the same number of places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from twofold.benchmarks.base import Rows
from twofold.component import require
from twofold.memories.base import Memory

SIZE = 2000


@dataclass
class Balanced(Memory):
    """A memory with a total size that the classes seen so far share, or with a quota per class."""

    size: int | None = None
    per_class: int | None = None
    current: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.size is None or self.per_class is None,
            f"{self.name} has a size or a quota per_class, not both",
        )
        if self.size is None and self.per_class is None:
            self.size = SIZE
        for name, value in (("size", self.size), ("per_class", self.per_class)):
            require(
                value is None or value > 0, f"{self.name}'s {name} must be above 0, not {value}"
            )

    def quota(self) -> int | None:
        return self.per_class

    def share(self, classes: int) -> int:
        return self.per_class or max(2, (self.size or 0) // classes)

    def rank(self, rows: Rows) -> NDArray[Any]:
        """Return the values by which examples of a class are kept, over all training examples."""
        return self.priority

    def keep(self, rows: Rows) -> Rows:
        by = self.rank(rows)
        return self.first(rows, self.per_class, by=by, each=self.labels, total=self.size)
