"""How a store has borne one attempt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Outcome:
    """How a store has borne one attempt."""

    lost: bool = False  # a run is missing, or has different curves
    twice: bool = False  # a run was trained although it was complete or being trained
    badly: str = ""  # a traceback, an answer of many lines, or none in time


def bad(code: int, said: str) -> str:
    """Return what is wrong with an answer; nothing if it is a good one."""
    escapes = "\x1b" in said
    return said[-2000:] if code not in (0, 1, 2) or "Traceback" in said or escapes else ""
