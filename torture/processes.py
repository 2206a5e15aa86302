"""Processes on this machine: who started whom, and who is still there."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path


def below(pid: int) -> list[int]:
    """Return a process and all that it and its children have started."""
    try:
        text = " ".join(file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:  # it has ended meanwhile
        return []
    return [pid, *(found for child in text.split() for found in below(int(child)))]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def running(pid: int) -> bool:
    """Tell whether a process has not ended; one that was not waited for has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Patience:
    """Time to wait, in seconds of a quiet machine: a second of a busy one counts for less."""

    def __init__(self, seconds: float) -> None:
        self._left, self._last = seconds, time.monotonic()

    def is_over(self) -> bool:
        now = time.monotonic()
        share = (os.cpu_count() or 1) / max(os.getloadavg()[0], 1.0)  # of a core, per process
        self._left -= (now - self._last) * min(share, 1.0)
        self._last = now
        return self._left < 0


def ended(pids: Iterable[int], seconds: float) -> bool:
    """Wait until all have ended, or for some time."""
    patience = Patience(seconds)
    while any(map(running, pids)):
        if patience.is_over():
            return False
        time.sleep(0.05)
    return True


def kill_all(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
