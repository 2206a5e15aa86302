"""What the seeds of a comparison detect, and how many would decide, in words."""

from __future__ import annotations

from typing import Protocol

from twofold.compare.statistics import MOST
from twofold.statistics import FEWEST


class Tested(Protocol):
    """A comparison that was tested, or has too few seeds for a test."""

    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def detectable(self) -> float | None: ...
    @property
    def seeds_needed(self) -> int | None: ...
    @property
    def seeds_at_most(self) -> int | None: ...


def needed_words(tested: Tested, unit: str = "points", decimals: int = 1) -> str:
    """Return what the seeds of an undecided comparison detect, and how many would decide."""
    detected = f"These seeds detect {tested.detectable:.{decimals}f} {unit} with 80% power."
    needed, at_most = _new_seeds(tested.seeds_needed), tested.seeds_at_most
    if at_most is None:
        further = f"{needed} would show an effect as large as it looks"
    else:
        further = (
            f"{needed} would decide if the effect is as it looks, and {_new_seeds(at_most)} "
            "whatever it is"
        )
    return f"{detected} With the same power, {further}."


def undecided_words(tested: Tested) -> str:
    """Return why a comparison is undecided, in two or three words."""
    needed = tested.seeds_needed
    if needed is None:
        return "too few seeds" if len(tested.seeds) < FEWEST else "no spread"
    return f"needs {_new_seeds(needed)}"


def _new_seeds(number: int | None) -> str:
    """Return how many a new comparison needs; the seeds that suggested it do not count again."""
    if number is None or number > MOST:
        return f"more than {MOST:,} new seeds"
    return f"{number} new seeds"
