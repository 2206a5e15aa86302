"""Locks between processes. A lock ends with the process that holds it, even if it is killed."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from twofold.errors import UserError

# Not for writing alone: a pipe without readers could not be opened so, and could not be named.
# Windows has neither of the last two.
FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT
FLAGS |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

if sys.platform == "win32":
    import msvcrt

    # A lock of Windows forbids others to read what it covers, so it covers a byte that no file has.
    PLACE, PAUSE = 2**31 - 2, 0.1  # PAUSE in seconds

    def hold(descriptor: int, wait: bool = False) -> bool:
        """Lock an open file until it is closed, and return whether that succeeded."""
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            while True:
                os.lseek(descriptor, PLACE, os.SEEK_SET)
                try:
                    msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                    return True
                except PermissionError:
                    if not wait:
                        return False
                time.sleep(PAUSE)
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)

else:
    import fcntl

    def hold(descriptor: int, wait: bool = False) -> bool:
        """Lock an open file until it is closed, and return whether that succeeded."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True


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
            hold(lock.fileno(), wait=True)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if it is free, and yield whether it is held now.

    The folder of the lock file must exist.
    """
    lock, held = _opened(path), False
    try:
        held = _acquired(lock.fileno(), path)
        yield held
    finally:
        if held and sys.platform != "win32":
            path.unlink(missing_ok=True)
        lock.close()
        if held and sys.platform == "win32":  # it removes no file that a process has open
            with suppress(PermissionError):
                path.unlink(missing_ok=True)


def _opened(path: Path) -> IO[bytes]:
    """Open a lock file. A link is not followed, and a pipe is not waited for."""
    if sys.platform == "win32" and path.is_symlink():
        raise UserError(f"{path} is a symbolic link and no lock file: remove it")
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
    if not hold(lock):
        return False
    try:  # the last holder may have removed the file meanwhile, and then it locks nothing
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
