"""`twofold list`: the available benchmarks, objectives and routines."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    parser = commands.add_parser("list", help="benchmarks, objectives, routines, their options")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="FILE.py", help="your own components"
    )
    parser.set_defaults(act=act, parser=parser)


def act(args: argparse.Namespace) -> None:
    from twofold.discovery import import_file
    from twofold.report.listing import listing

    for plugin in args.plugin:
        import_file(plugin)
    print(listing())
