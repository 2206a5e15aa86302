"""Locks between processes, which end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for it; it is removed afterwards."""
    said = False
    while True:
        with try_lock(path) as held:
            if held:
                yield
                return
        if not said:
            print(f"waiting for another process ({path})", file=sys.stderr)
            said = True
        with path.open("ab") as lock:  # sleep until the holder lets go, then try again
            fcntl.flock(lock, fcntl.LOCK_EX)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if nobody does; whether it is held. Its folder must exist."""
    with path.open("ab") as lock:
        held = _acquired(lock.fileno(), path)
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)


def _acquired(lock: int, path: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:  # a file that the last holder has removed meanwhile is nobody's lock
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
