"""Reservoir sampling (Vitter, 1985): a uniform sample of all that was seen.

Every example gets a random number, and the memory keeps the `size` highest. This is the sample of
Vitter's algorithm R in distribution, and the same for all methods with one seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twofold.benchmarks.base import Rows
from twofold.component import require
from twofold.memories.base import Memory


@dataclass
class Reservoir(Memory, name="reservoir"):
    """A uniform sample of all examples seen so far.

    size: examples in all.
    """

    size: int = 2000
    current: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.size > 0, f"reservoir's size must be above 0, not {self.size}")

    def share(self, classes: int) -> int:
        return max(2, self.size // classes)

    def keep(self, rows: Rows) -> Rows:
        return self.first(rows, self.size)
