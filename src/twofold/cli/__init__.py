"""The command line. Heavy imports wait until a command needs them, so `--help` answers at once.

Each command has a file with `add`, which declares the command, and a function that executes it.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from twofold.cli import (
    compare,
    data,
    departures,
    figure,
    listing,
    report,
    run,
    runs,
    study,
    table,
    verdicts,
)
from twofold.cli.parsing import Parser
from twofold.errors import UserError
from twofold.text import inert


class Version(argparse.Action):
    """Print the version, which is looked up only on request."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(nargs=0, help="print the version and exit", **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        from importlib.metadata import version

        print(version("twofold"))
        parser.exit()


def _parser() -> Parser:
    parser = Parser(
        prog="twofold",
        description="Continual learning as what x how: any objective with any optimisation "
        "routine, evaluated after every iteration.",
    )
    parser.add_argument("--version", action=Version)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    shown = (table, compare, verdicts, departures, figure, report)
    for command in (run, study, runs, *shown, listing, data):
        command.add(commands)
    return parser


class _Terminated(KeyboardInterrupt):
    """SIGTERM, as a cluster's scheduler sends it."""


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does."""

    def stop(number: int, frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    It is 0 for success, 1 if a run failed, 2 for an error that the user can fix, 130 after Ctrl-C
    and 143 after SIGTERM.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may only know ASCII
    try:
        with _stoppable():
            args = _parser().parse_args(argv)
            code: int | None = args.act(args)
            print(end="", flush=True)  # a full disk is noticed here, and not after the answer
    except UserError as error:
        message = "\n".join(map(inert, str(error).split("\n")))
        print(f"twofold: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("; ".join(["twofold: stopped", *getattr(stop, "__notes__", [])]), file=sys.stderr)
        return 143 if isinstance(stop, _Terminated) else 130
    except BrokenPipeError:  # such as `| head`
        _drop_output()
        return 1
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            print("twofold: the name of a file or folder is too long", file=sys.stderr)
        elif error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            print(f"twofold: can't write the output: {error.strerror}", file=sys.stderr)
            _drop_output()
        else:
            raise
        return 2
    return code or 0


def _drop_output() -> None:
    """Let what was not written go, so that the end of the process does not try it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
