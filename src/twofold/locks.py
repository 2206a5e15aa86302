"""Locks between processes. A lock ends with the process that holds it, even if it is killed."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock file `path`, hold it, and remove it afterwards."""
    said = False
    while True:
        with try_lock(path) as held:
            if held:
                yield
                return
        if not said:
            print(f"waiting for another process ({path})", file=sys.stderr)
            said = True
        with path.open("ab") as lock:  # sleep until the lock is released, then try again
            fcntl.flock(lock, fcntl.LOCK_EX)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if it is free, and yield whether it is held now.

    The folder of the lock file must exist.
    """
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
    try:  # the last holder may have removed the file meanwhile, and then it locks nothing
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
