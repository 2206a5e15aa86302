"""`twofold report`: a page to explore runs, as a file or served while runs are trained."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.output import no_runs
from twofold.cli.parsing import Parser, folder, whole
from twofold.errors import UserError
from twofold.text import counted

if TYPE_CHECKING:
    from twofold.experiments.store import Store


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "report",
        help="a page with tables, verdicts and interactive curves",
        description="Write a page with the tables, verdicts and interactive curves of a run store: "
        "one file, which opens in a browser and needs no network. Or serve it to this machine, and "
        "watch a study while its runs finish.",
    )
    parser.set_defaults(act=act, parser=parser)
    add = parser.add_argument
    add("store", nargs="?", type=folder, metavar="STORE", help="(runs)")
    add("--runs", type=folder, metavar="DIR", help="the same as STORE")
    add("-o", "--output", type=Path, metavar="FILE", help="(default: report.html)")
    add("--serve", action="store_true", help="serve the page, and refresh it as runs finish")
    add("--port", type=whole, metavar="N", help="to serve on (default: 8000, or any free one)")


def act(args: argparse.Namespace) -> None:
    from twofold.experiments.store import Store

    if args.serve and args.output:
        raise UserError("--serve writes no file: leave --output out")
    if args.port is not None and not args.serve:
        raise UserError("--port is for --serve")
    if args.store and args.runs:
        raise UserError("STORE and --runs say the same: leave one out")
    place = args.store or args.runs or Path("runs")
    if not place.is_dir():
        raise no_runs(place, "twofold run")
    store = Store(place)
    if args.serve:
        _serve(store, args.port)
    else:
        _write(store, args.output or Path("report.html"))


def _write(store: Store, output: Path) -> None:
    from twofold.plainfiles import write_output
    from twofold.report.page import build_page

    runs = store.runs(curves=True)
    if not runs:
        raise no_runs(store.folder, "twofold run")
    page = build_page(runs, str(store.folder)).encode()
    try:
        write_output(output, page)
    except OSError as error:
        raise UserError(f"can't write {output}: {error.strerror}") from None
    of = counted(len(runs), "run")
    print(f"The page of {of} is in {output} ({len(page) / 1e6:.1f} MB). Open it in a browser:")
    print(f"  {output.resolve().as_uri()}")


def _serve(store: Store, port: int | None) -> None:
    from twofold.report.page.server import HOST, page_server

    with page_server(store, port) as server:
        address = f"http://{HOST}:{server.server_port}/"
        print(f"Watching {store.folder}: open {address} (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nended")
