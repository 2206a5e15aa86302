"""How a store has borne one attempt."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass
class Outcome:
    """How a store has borne one attempt."""

    lost: bool = False  # a run is missing, or has different curves
    twice: bool = False  # a run was trained although it was complete or being trained
    badly: str = ""  # a traceback, an answer of many lines, or none in time


class NotStartedError(Exception):
    """Nothing was disturbed, since what the test itself needs did not start."""


def bad(code: int | None, said: str, good: Collection[int] = (0, 1, 2)) -> str:
    """Return what is wrong with an answer; nothing if it is a good one.

    good: the exit codes of good answers. A process that is killed since its time is up has none of
        them, and may have said nothing.
    """
    if code in good and "Traceback" not in said and "\x1b" not in said:
        return ""
    return f"exit code {code}: {said[-2000:]}"
