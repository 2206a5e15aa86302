"""Crashes on purpose: processes that end before the n-th change of a file, as if killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.copyfile"}
REMOVALS = {"os.remove", "os.rmdir"}
WRITING = os.O_WRONLY | os.O_RDWR
KILLED = 9


def crashing(action: Callable[[], object], folder: Path, number: int) -> bool:
    """Do `action` in a process that ends before the n-th change that it makes in a folder.

    Return whether it was killed; False if it came to its end before that.
    """
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, args: tuple[Any, ...]) -> None:
            nonlocal count
            changes = event in CHANGES or (event == "open" and bool(args[2] & WRITING))
            here = any(str(arg).startswith(str(folder)) for arg in args)
            inside = event in REMOVALS and args[1] != -1  # relative to a folder, as in rmtree
            if changes and (here or inside):
                count += 1
                if count == number:
                    os._exit(KILLED)

        sys.addaudithook(hook)
        try:
            action()
        except BaseException as error:
            print(f"not killed, but {error!r}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED), code
    return code == KILLED


def every_crash(prepare: Callable[[], tuple[Callable[[], object], Path]]) -> Iterator[int]:
    """Crash before the first change, the second, ..., until the action comes to its end.

    prepare: makes everything anew, and returns the action and its folder.
    """
    number, killed = 0, True
    while killed:
        number += 1
        action, folder = prepare()
        killed = crashing(action, folder, number)
        yield number
