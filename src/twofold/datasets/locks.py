"""A lock between processes, so that a thing is fetched or decoded by one of them only."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, which is removed afterwards."""
    while True:
        with path.open("ab") as lock:
            _acquire(lock, path)
            # Whoever held the lock before has removed the file: then we hold nobody's lock.
            if not _is(lock, path):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _acquire(lock: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another process ({path})", file=sys.stderr)
        fcntl.flock(lock, fcntl.LOCK_EX)


def _is(lock: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except FileNotFoundError:
        return False
