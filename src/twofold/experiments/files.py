"""Files that are written whole or not at all, and digests that show changes."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from twofold.errors import UserError
from twofold.plainfiles import opened

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn errors of the disk into UserErrors of one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"the disk of {folder} is full: make room, then go on") from error
        raise UserError(f"can't write to {folder}: {error.strerror or error}") from error


def digest(path: Path) -> str:
    """Return the digest of a file of a store, where a symbolic link is not followed."""
    with opened(path, follow=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def own_folder(path: Path) -> Path:
    """Make a folder, unless it is there; a symbolic link to one is refused."""
    path.mkdir(exist_ok=True)
    if path.is_symlink():
        raise UserError(f"{path} is a symbolic link, through which nothing is written: remove it")
    return path


def sync(folder: Path) -> None:
    """Make sure that all files of a folder, and the folder itself, are on the disk."""
    for path in sorted(folder.rglob("*"), reverse=True):
        _sync(path)
    _sync(folder)


def sync_names(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk, for example after a rename."""
    _sync(folder)


def _sync(path: Path) -> None:
    if sys.platform == "win32" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some network file systems cannot sync folders
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def exchange(one: Path, other: Path) -> bool:
    """Swap the names of two folders in one step; return False if the system cannot."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    if renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(other))


@cache
def _renameat2() -> Any:
    if sys.platform != "linux":
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = (
        *(ctypes.c_int, ctypes.c_char_p),
        *(ctypes.c_int, ctypes.c_char_p),
        ctypes.c_uint,
    )
    return function
