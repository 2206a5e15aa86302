"""Options and functions shared by commands that turn runs into text."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from twofold.cli.parsing import Parser, folder
from twofold.errors import UserError

if TYPE_CHECKING:
    from twofold.compare.groups import Group
    from twofold.report.rendering import Renderer

SUFFIXES = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": "html"}

T = TypeVar("T")


class Help(argparse.Action):
    """Print the help with names that are looked up only on request.

    listed: returns lines to print below.
    """

    def __init__(self, listed: Callable[[], list[str]], **kwargs: Any) -> None:
        self._listed = listed
        super().__init__(nargs=0, help="show this help and exit", **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        parser.epilog = "\n".join(filter(None, [*self._listed(), parser.epilog]))
        parser.print_help()
        parser.exit()


def add_output_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--runs", type=folder, default=Path("runs"), metavar="DIR", help="folder with runs (runs)")
    how = "such as md, csv or json (default: as FILE's name ends, or md)"
    add("--format", metavar="FORMAT", help=how)
    add("-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of printing")


def add_metrics(parser: Parser, help: str) -> None:
    """Add `--metrics NAME,...`."""
    parser.add_argument(
        "--metrics",
        type=lambda text: text.split(","),
        default=(),
        metavar="NAME,...",
        help=help,
    )


def groups_in(store: Path, command: str) -> list[Group]:
    """Return the groups of a store. If there are none, the error names `command` to fill it."""
    from twofold.compare.groups import groups
    from twofold.experiments.store import Store

    all_groups = groups(Store(store).runs()) if store.is_dir() else []
    if not all_groups:
        raise no_runs(store, command)
    return all_groups


def no_runs(folder: Path, command: str) -> UserError:
    """Return the error for a folder without runs. `command` would fill it."""
    from twofold.experiments.store import Store

    if not folder.is_dir():
        return UserError(f"there is no folder {folder}: `{command}` makes one")
    stores = ", ".join(map(str, Store(folder).inner()))
    if stores:
        return UserError(f"{folder} holds stores: {stores}; name one of them")
    return UserError(f"there are no runs in {folder}: `{command}` trains them")


def write_text(render: Renderer[T], x: T, args: argparse.Namespace) -> None:
    """Render `x` in the requested format, and print it or write it to a file."""
    ending = args.output.suffix.lower() if args.output else ".md"
    format: str = args.format or SUFFIXES.get(ending, "")
    if not args.format and format not in render.formats:
        formats = "|".join(render.formats)
        raise UserError(f"what format is {args.output.name}? Set --format {formats}")
    from twofold.plainfiles import write_output

    text = render(x, format)
    if args.output is None:
        print(text, end="")
        return
    try:
        write_output(args.output, text)
    except OSError as error:
        raise UserError(f"can't write {args.output}: {error.strerror}") from None
    print(f"The table is in {args.output}")
