"""When a model is judged: after every iteration, or densely after a task switch and sparsely later.

A minimum over fewer evaluations can only be higher, so MIN is then an upper bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twofold.errors import UserError


@dataclass(frozen=True)
class Schedule:
    """After each of a task's first `dense` iterations, and then after every `sparse`-th."""

    text: str
    dense: int
    sparse: int

    @classmethod
    def parse(cls, text: str, every: int = 1) -> Schedule:
        """`every`: after every `every`-th iteration. `dense:100:10`; `dense` alone means that."""
        if text == "every":
            return cls(text, 0, every)
        match = re.fullmatch(r"dense(?::(\d+):(\d+))?", text)
        if match is None or (match[2] is not None and int(match[2]) < 1):
            raise UserError(f"eval schedule must be every, or such as dense:100:10, not {text!r}")
        if every != 1:
            raise UserError(f"eval schedule {text} says how often: leave eval every {every} out")
        dense, sparse = (int(match[1]), int(match[2])) if match[1] else (100, 10)
        return cls(f"dense:{dense}:{sparse}", dense, sparse)

    @property
    def complete(self) -> bool:
        """Whether no iteration is left out."""
        return self.sparse == 1

    def due(self, n: int) -> bool:
        """Whether to judge after a task's n-th iteration. (The last one always is.)"""
        return n <= self.dense or n % self.sparse == 0

    def count(self, iterations: int) -> int:
        """Of evaluations in a task of so many iterations, its last included."""
        return sum(n == iterations or self.due(n) for n in range(1, iterations + 1))
