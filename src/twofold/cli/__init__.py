"""The command line. Heavy imports wait until a command needs them: `--help` answers at once.

One file a command, each with `add`, which declares it, and a function that carries it out.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from twofold.cli import data, departures, figure, listing, report, run, runs, study, table, verdicts
from twofold.cli.parsing import Parser
from twofold.errors import UserError


class Version(argparse.Action):
    """Prints the version, which is looked up only when it is asked for."""

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
        "routine, judged after every iteration.",
    )
    parser.add_argument("--version", action=Version)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    for command in (run, study, runs, table, verdicts, departures, figure, report, listing, data):
        command.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """0 if all went well, 1 if a run failed, 2 if the user can mend it, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # ± and bars, where only ASCII goes
    try:
        args = _parser().parse_args(argv)
        code: int | None = args.act(args)
    except UserError as error:
        print(f"twofold: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("twofold: stopped; what is finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code or 0
