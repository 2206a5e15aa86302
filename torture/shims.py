"""Processes that end at a chosen moment, lose what was not synced, or see a full disk."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.copyfile"}
WRITING = os.O_WRONLY | os.O_RDWR
KILLED = -signal.SIGKILL


def forked(action: Callable[[], object], seconds: float = 120.0) -> tuple[int, str]:
    """Do `action` in a new process; return its exit code and what it printed to stderr.

    A process that takes too long is killed, and its code is None of a process that ends itself.
    """
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            os.dup2(printed.fileno(), 2)
            os.dup2(printed.fileno(), 1)
            code = 1
            try:
                result = action()
                code = result if isinstance(result, int) else 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                sys.stdout.flush()
                os._exit(code)
        code = awaited(child, seconds)
        printed.seek(0)
        return code, printed.read().decode(errors="replace")


def awaited(child: int, seconds: float) -> int:
    """Wait for a process, and kill it when its time is up."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return KILLED
        time.sleep(0.005)


def crash_at(
    folder: Path, number: int, last: Callable[[], None] = lambda: None, complete: bool = False
) -> None:
    """Let this process end before its n-th change of a file in a folder; `last` is called then.

    complete: whether to count from when a run in this store is complete.
    """
    count, counting = 0, not complete

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count, counting
        changes = event in CHANGES or (event == "open" and bool(args[2] & WRITING))
        if changes and any(str(arg).startswith(str(folder)) for arg in args):
            count += counting
            named = Path(str(args[1])) if event == "os.rename" else folder
            counting = counting or (named.parent == folder and "-" in named.name[1:])
            if count == number:
                last()
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def forgetting(folder: Path) -> Callable[[], None]:
    """Return what a power failure does: files that were not synced lose their contents."""
    synced: dict[int, int] = {}
    sync = os.fsync

    def fsync(descriptor: Any) -> None:
        sync(descriptor)
        state = os.fstat(descriptor if isinstance(descriptor, int) else descriptor.fileno())
        synced[state.st_ino] = state.st_size

    old_files = {path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
    os.fsync = fsync

    def forget() -> None:
        for path in folder.rglob("*"):
            if path.is_file() and path.stat().st_ino not in old_files:
                os.truncate(path, min(path.stat().st_size, synced.get(path.stat().st_ino, 0)))

    return forget


def small_disk(size: int) -> None:
    """Let no file of this process grow beyond a size."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def jumping_clock(jump: float) -> None:
    """Let the clock of this process jump back and forth."""
    now, calls = time.time, iter(range(10**9))
    time.time = lambda: now() + (jump if next(calls) % 2 else -jump)
