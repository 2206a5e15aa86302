"""`twofold runs`: list, show, verify, remove and export the runs of a store."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.parsing import Parser, folder, real, seed_list, whole
from twofold.errors import UserError

if TYPE_CHECKING:
    from twofold.experiments.store import Store

FILTERS = ("benchmark", "mode", "method", "profile", "lr", "batch_size")
EXAMPLES = """examples:
  twofold runs --method er                           what there is
  twofold runs verify --runs results
  twofold runs export --to results --benchmark rotated-mnist
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "runs",
        help="list, show, verify, remove or export finished runs",
        description="List the runs of a store; show them in full, verify their checksums, remove "
        "them, or export them: copy\nthem into another store, small enough to be published, with "
        "all that tables, figures and the page show.\nFilters and names (a folder's, or its last "
        "ten letters) say which.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=act, parser=parser)
    actions = ("list", "show", "verify", "remove", "export")
    add = parser.add_argument
    add("action", nargs="?", default="list", choices=actions, metavar="|".join(actions))
    add("names", nargs="*", metavar="RUN", help="only these")
    add("--runs", type=folder, default=Path("runs"), metavar="DIR", help="the run store (runs)")
    add("--benchmark")
    add("--mode")
    add("--method")
    add("--profile")
    add("--lr", type=real)
    add("--batch-size", type=whole, metavar="N")
    add("--seed", type=seed_list, metavar="N,N,...")
    add("--to", type=folder, metavar="DIR", help="the store to export to")
    add("--json", action="store_true", help="one JSON object a run, on one line")


def act(args: argparse.Namespace) -> int:
    from twofold.experiments.store import Store

    if not args.runs.is_dir():
        raise UserError(f"there is no folder {args.runs}: `twofold run` makes one")
    if (args.action == "export") != (args.to is not None):
        raise UserError("`twofold runs export` and --to DIR, where to, go together")
    store = Store(args.runs)
    if args.action == "verify":
        return _verify(store, args.names)
    found = [summary for summary in store.summaries() if _matches(summary, args)]
    _check_names(args.names, found, args.runs)
    if args.action == "remove":
        return _remove(store, found, args)
    if args.action == "export":
        return _export(store, found, args.to)
    if args.action == "show":
        for summary in found:
            whole = {**summary, **_measured(Path(summary["folder"]))}
            print(json.dumps(whole, indent=None if args.json else 2))
    elif args.json:
        for summary in found:
            print(json.dumps(summary))
    else:
        _print(found)
    return 0


def _measured(place: Path) -> dict[str, Any]:
    """What the curves say beyond the summary: docs/measures.md tells what these are."""
    from twofold.experiments.runs import Run

    run = Run.load(place)
    raw = {} if run.raw_measures is None else {"raw_measures": run.raw_measures}
    return {"measures": run.measures, **raw, "gaps": [dataclasses.asdict(gap) for gap in run.gaps]}


def _matches(summary: dict[str, Any], args: argparse.Namespace) -> bool:
    named = not args.names or any(_is(Path(summary["folder"]), name) for name in args.names)
    seeds = args.seed is None or summary["seed"] in args.seed
    wanted = {name: getattr(args, name) for name in FILTERS if getattr(args, name) is not None}
    return named and seeds and all(summary[name] == value for name, value in wanted.items())


def _is(folder: Path, name: str) -> bool:
    return folder.name == Path(name).name or folder.name.endswith(f"-{name}")


def _check_names(names: list[str], found: list[dict[str, Any]], store: Path) -> None:
    for name in names:
        if not any(_is(Path(summary["folder"]), name) for summary in found):
            raise UserError(f"there is no run {name!r} in {store}: `twofold runs` lists them")


def _verify(store: Store, names: list[str]) -> int:
    from twofold.experiments.store import DamagedRunError, check

    folders = [f for f in store.folders() if not names or any(_is(f, name) for name in names)]
    _check_names(names, [{"folder": str(place)} for place in folders], store.folder)
    damaged = 0
    for place in folders:
        try:
            check(place)
        except DamagedRunError as error:
            damaged += 1
            print(f"{place}: {error}")
    print(f"{len(folders) - damaged} of {len(folders)} runs are as they were written")
    return 1 if damaged else 0


def _remove(store: Store, found: list[dict[str, Any]], args: argparse.Namespace) -> int:
    filtered = args.seed is not None or any(getattr(args, name) is not None for name in FILTERS)
    if not (args.names or filtered):
        raise UserError("say which runs to remove: by name, or with filters such as --method er")
    for summary in found:
        store.remove(Path(summary["folder"]))
    print(f"{len(found)} runs removed")
    return 0


def _export(store: Store, found: list[dict[str, Any]], to: Path) -> int:
    from twofold.experiments.export import export

    if not found:
        raise UserError(f"no run in {store.folder} matches: `twofold runs` lists them")
    copied, size = export([Path(summary["folder"]) for summary in found], to)
    there = len(found) - copied
    already = f"; {there} were there already" if there else ""
    print(f"{copied} runs exported to {to}, {size / 1e3:,.0f} KB{already}")
    return 0


def _print(found: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from twofold.report.tables import run_table

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no width to fit into
    console.print(run_table(found))
