"""What commands that turn runs into text share: where the runs are, and where the text goes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twofold.cli.parsing import Parser, folder
from twofold.errors import UserError

if TYPE_CHECKING:
    from twofold.report.cells import Cell

SUFFIXES = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": "html"}


def add_output_options(parser: Parser, formats: Sequence[str]) -> None:
    add = parser.add_argument
    add("--runs", type=folder, default=Path("runs"), metavar="DIR", help="folder with runs (runs)")
    listed = "|".join(formats)
    how = f"{listed} (default: as FILE's name ends, or md)"
    add("--format", choices=formats, metavar="FORMAT", help=how)
    add("-o", "--output", type=Path, metavar="FILE", help="write it there instead of printing it")


def cells_in(store: Path, make: str) -> list[Cell]:
    """The cells of a store; `make` is the command that would fill it."""
    from twofold.experiments.store import Store
    from twofold.report.cells import cells

    found = cells(Store(store).runs()) if store.is_dir() else []
    if not found:
        raise no_runs(store, make)
    return found


def no_runs(folder: Path, make: str) -> UserError:
    """Says what a folder without runs is; `make` is the command that would fill it."""
    from twofold.experiments.store import Store

    if not folder.is_dir():
        return UserError(f"there is no folder {folder}: `{make}` makes one")
    stores = ", ".join(map(str, Store(folder).inner()))
    if stores:
        return UserError(f"{folder} holds stores: {stores}; name one of them")
    return UserError(f"there are no runs in {folder}: `{make}` makes them")


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {noun}" + ("s" if number != 1 else "")


def write_text(
    render: Callable[[str], str], args: argparse.Namespace, formats: Sequence[str]
) -> None:
    """Render in the format asked for, and print or write it."""
    ending = args.output.suffix.lower() if args.output else ".md"
    format: str = args.format or SUFFIXES.get(ending, "")
    if format not in formats:
        raise UserError(f"what format is {args.output.name}? Say --format {'|'.join(formats)}")
    text = render(format)
    if args.output is None:
        print(text, end="")
        return
    try:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"can't write {args.output}: {error.strerror}") from None
    print(f"The table is in {args.output}")
