"""A command in a process that lacks what Windows lacks. It is no Windows: only names are missing.

python windows.py PLUGIN STORE
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import types
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any


def disguise() -> None:
    """Let Python pass for one on Windows, after it has imported what depends on the system."""
    import fcntl

    import pyarrow.parquet
    import rich.progress
    import scipy.optimize
    import torch

    assert all((pyarrow, rich, scipy, torch))
    resource_tracker.ensure_running()  # for spawning as it is done elsewhere
    from helpers.blocked import block

    def locking(descriptor: int, mode: int, length: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(*error.args) from None

    msvcrt: Any = types.ModuleType("msvcrt")
    msvcrt.locking, msvcrt.LK_NBLCK = locking, 2
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "mkfifo", "fork", "getuid"):
        delattr(os, name)
    del signal.pthread_sigmask, multiprocessing.context.ForkServerContext
    for name in ("fcntl", "resource", "termios", "pwd", "grp", "multiprocessing.forkserver"):
        sys.modules.pop(name, None)
    block({"fcntl", "resource", "termios", "pwd", "grp"})
    sys.modules["msvcrt"] = msvcrt
    sys.platform = "win32"


def locks(folder: Path) -> None:
    from twofold.locks import locked, try_lock

    path = folder / "lock"
    with try_lock(path) as first, try_lock(path) as second:
        assert first
        assert not second
    assert not path.exists()
    with contextlib.suppress(KeyError), locked(path):
        raise KeyError
    assert not path.exists()


if __name__ == "__main__":
    disguise()
    plugin, store = sys.argv[1:]
    Path(store).mkdir()
    locks(Path(store))
    from twofold.cli import main

    command = ["run", "blobs", "er", "--plugin", plugin, "--out", store, "--batch-size", "10"]
    assert main([*command, "--iterations", "5", "--workers", "1"]) == 0
    assert "multiprocessing.forkserver" not in sys.modules
    assert main(["runs", "verify", "--runs", store]) == 0
    for _ in range(2):  # the second time, nothing is new
        assert main(["runs", "export", "--runs", store, "--to", f"{store}-archive"]) == 0
