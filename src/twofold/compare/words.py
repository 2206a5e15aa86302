"""What the seeds of a comparison detect, and how many would decide, in words."""

from __future__ import annotations

from typing import Protocol

from twofold.compare.statistics import FEWEST, MOST


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
    text = f"These seeds detect {tested.detectable:.{decimals}f} {unit} with 80% power. "
    if tested.seeds_at_most is None:
        return f"{text}{_seeds(tested.seeds_needed)} would show an effect as large as it looks."
    return (
        f"{text}{_seeds(tested.seeds_needed)} would decide if the effect is as it looks, and "
        f"{_seeds(tested.seeds_at_most).lower()} whatever it is."
    )


def undecided_words(tested: Tested) -> str:
    """Return why a comparison is undecided, in two or three words."""
    needed = tested.seeds_needed
    if needed is None:
        return "too few seeds" if len(tested.seeds) < FEWEST else "no spread"
    return f"needs {f'{needed}' if needed <= MOST else f'more than {MOST:,}'} seeds"


def _seeds(number: int | None) -> str:
    return f"More than {MOST:,} seeds" if number is None or number > MOST else f"{number} seeds"
