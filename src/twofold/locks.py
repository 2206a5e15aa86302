"""Locks between processes. A lock ends with the process that holds it, even if it is killed."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from twofold.errors import UserError

# Not for writing alone: a pipe without readers could not be opened so, and could not be named.
FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock file `path`, hold it, and remove it afterwards."""
    announced = False
    while True:
        with try_lock(path) as held:
            if held:
                yield
                return
        if not announced:
            print(f"waiting for another process ({path})", file=sys.stderr)
            announced = True
        with _opened(path) as lock:  # sleep until the lock is released, then try again
            fcntl.flock(lock, fcntl.LOCK_EX)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if it is free, and yield whether it is held now.

    The folder of the lock file must exist.
    """
    with _opened(path) as lock:
        held = _acquired(lock.fileno(), path)
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)


def _opened(path: Path) -> IO[bytes]:
    """Open a lock file. A link is not followed, and a pipe is not waited for."""
    try:
        lock = os.fdopen(os.open(path, FLAGS, 0o666), "ab")
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a symbolic link and no lock file: remove it") from None
        raise
    if not stat.S_ISREG(os.fstat(lock.fileno()).st_mode):
        lock.close()
        raise UserError(f"{path} is not a plain file and no lock file: remove it")
    return lock


def _acquired(lock: int, path: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:  # the last holder may have removed the file meanwhile, and then it locks nothing
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
