"""When a model is evaluated: after every iteration, or less often.

A minimum over fewer evaluations can only be higher, so MIN is then an upper bound. `exact-min` also
checks between evaluations whether an accuracy falls below its minimum so far, so MIN is exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twofold.errors import UserError

LARGEST = 10**9  # iterations; a larger number is a typing error


@dataclass(frozen=True)
class Schedule:
    """Evaluations after each of a task's first `dense` iterations, then after every `sparse`-th.

    exact_min: whether all other iterations are checked for a new minimum.
    """

    dense: int
    sparse: int
    exact_min: bool = False

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read `every`, `every:10`, `dense:100:10` or `exact-min:10`.

        `dense` means `dense:100:10`, and `exact-min` means `exact-min:10`.
        """
        match = re.fullmatch(
            r"(every|exact-min)(?::(\d{1,10}))?|dense(?::(\d{1,10}):(\d{1,10}))?", text
        )
        if match is None:
            raise _wrong(text)
        if match[1] == "every":
            schedule = cls(0, int(match[2] or 1))
        elif match[1]:
            schedule = cls(0, int(match[2] or 10), exact_min=True)
        else:
            schedule = cls(int(match[3] or 100), int(match[4] or 10))
        if not (schedule.dense <= LARGEST and 1 <= schedule.sparse <= LARGEST):
            raise _wrong(text)
        return schedule

    @property
    def text(self) -> str:
        """The canonical text of this schedule."""
        if self.exact_min:
            return f"exact-min:{self.sparse}"
        if self.dense:
            return f"dense:{self.dense}:{self.sparse}"
        return "every" if self.complete else f"every:{self.sparse}"

    @property
    def complete(self) -> bool:
        """Whether every iteration is evaluated."""
        return self.sparse == 1

    @property
    def knows_min(self) -> bool:
        """Whether MIN is exact, and not an upper bound."""
        return self.complete or self.exact_min

    def due(self, n: int) -> bool:
        """Tell whether to evaluate after a task's n-th iteration; the last is always evaluated."""
        return n <= self.dense or n % self.sparse == 0

    def count(self, iterations: int) -> int:
        """Return the evaluations in a task of this many iterations, its last included."""
        if not iterations:
            return 0
        dense = min(self.dense, iterations)
        later = iterations // self.sparse - dense // self.sparse
        return dense + later + (not self.due(iterations))


def _wrong(text: str) -> UserError:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    return UserError(
        f"eval schedule must be every, every:10, dense:100:10 or exact-min, not {shown!r}"
    )
