"""Files that are opened only if they are plain files, and written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from io import BufferedReader
from pathlib import Path

# Windows has only the last one. Without it, it would change the ends of lines.
READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
READING |= getattr(os, "O_BINARY", 0)


def opened(path: Path, follow: bool = True) -> BufferedReader:
    """Open a plain file for reading. A pipe or a device, which might never end, is refused.

    follow: whether a symbolic link is followed, or refused (Windows always follows it).
    """
    flags = READING | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return os.fdopen(descriptor, "rb")


def real(path: Path) -> Path:
    """Return a path without symbolic links. A loop of links stays as it is."""
    return Path(os.path.realpath(path))


def replace_file(path: Path, *parts: str | bytes | memoryview) -> None:
    """Write a file under a new name and rename it: a link of its name is replaced, not followed."""
    unfinished = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        with unfinished.open("xb") as file:
            for part in parts:
                file.write(part.encode() if isinstance(part, str) else part)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file that a user has named: whole, or not at all. A link of theirs is followed."""
    target = real(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.is_file():  # such as /dev/stdout
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        replace_file(target, content)
