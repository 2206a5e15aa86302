"""`twofold runs`: list, show, verify, remove and export the runs of a store."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.output import counted, no_runs
from twofold.cli.parsing import Parser, folder, real, seed_list, whole
from twofold.errors import UserError, unknown

if TYPE_CHECKING:
    from twofold.experiments.store import Store

FILTERS = ("benchmark", "mode", "method", "profile", "lr", "batch_size", "seed")
EXAMPLES = """examples:
  twofold runs --method er                           what there is
  twofold runs verify --runs results/replication
  twofold runs export --to results/mine --benchmark rotated-mnist
"""

Summary = dict[str, Any]  # of a run, with its folder


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "runs",
        help="list, show, verify, remove or export finished runs",
        description="List the runs of a store; show them in full, verify their checksums, remove "
        "them, or export them: add\nthem to an archive, which is small enough to be published, "
        "with all that tables, figures and the page show.\nFilters and names (a folder's, or its "
        "last ten letters) say which.",
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
    add("--to", type=folder, metavar="DIR", help="the archive to export to")
    add("--json", action="store_true", help="one JSON object a run, on one line")


def act(args: argparse.Namespace) -> int:
    from twofold.experiments.store import Store

    if (args.action == "export") != (args.to is not None):
        raise UserError("`twofold runs export` and --to DIR, where to, go together")
    if not args.runs.is_dir():
        raise no_runs(args.runs, "twofold run")
    store = Store(args.runs)
    verify = args.action == "verify"
    there = [_usable(summary) for summary in store.summaries(damaged=verify)]
    if not there:
        raise no_runs(args.runs, "twofold run")
    found = _named(_filtered(there, args), args)
    if verify:
        return _verify(store, found)
    if args.action == "remove":
        return _remove(store, found, args)
    if args.action == "export":
        return _export(found, args.to)
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


def _usable(summary: Summary) -> Summary:
    """The summary; of one that lacks what filters ask for, no more than its folder."""
    return summary if {*FILTERS} <= summary.keys() else {"folder": summary["folder"]}


def _wanted(args: argparse.Namespace) -> dict[str, list[Any]]:
    """The filters that were given: the values of each, one of which a run must have."""
    given = {name: getattr(args, name) for name in FILTERS if getattr(args, name) is not None}
    return {name: said if isinstance(said, list) else [said] for name, said in given.items()}


def _filtered(there: list[Summary], args: argparse.Namespace) -> list[Summary]:
    """A value that no run has is a mistake, and not an empty answer."""
    found = there
    for name, values in _wanted(args).items():
        for value in values:
            if not any(_has(summary, name, value) for summary in there):
                known = {str(summary[name]) for summary in there}
                raise unknown(name.replace("_", " "), str(value), known)
        found = [summary for summary in found if any(_has(summary, name, v) for v in values)]
    if not found:
        raise UserError(f"no run in {args.runs} matches all of that: `twofold runs` lists them")
    return found


def _has(summary: Summary, name: str, value: Any) -> bool:
    """Whether the run has this value; one that can't be read may have any."""
    from twofold.experiments.naming import canonical

    if name not in summary:
        return True
    if name == "method":
        value = canonical(value, summary["benchmark"], summary["profile"])
    return bool(summary[name] == value)


def _named(found: list[Summary], args: argparse.Namespace) -> list[Summary]:
    for name in args.names:
        if not any(_is(summary, name) for summary in found):
            raise UserError(f"there is no run {name!r} in {args.runs}: `twofold runs` lists them")
    names = args.names
    return [s for s in found if not names or any(_is(s, name) for name in names)]


def _is(summary: Summary, name: str) -> bool:
    folder = Path(summary["folder"]).name
    return folder == Path(name).name or folder.endswith(f"-{name}")


def _verify(store: Store, found: list[Summary]) -> int:
    wrong = store.damaged([Path(summary["folder"]) for summary in found])
    for place, why in wrong.items():
        print(f"{place}: {why}")
    damaged = len(wrong)
    sound = len(found) - damaged
    state = "is as it was written" if 1 in (sound, len(found)) else "are as they were written"
    print(f"{sound} of {counted(len(found), 'run')} {state}")
    return 1 if damaged else 0


def _remove(store: Store, found: list[Summary], args: argparse.Namespace) -> int:
    if not (args.names or _wanted(args)):
        raise UserError("say which runs to remove: by name, or with filters such as --method er")
    for summary in found:
        store.remove(Path(summary["folder"]))
    print(f"{counted(len(found), 'run')} removed")
    return 0


def _export(found: list[Summary], to: Path) -> int:
    from twofold.experiments.export import export

    copied, size = export([Path(summary["folder"]) for summary in found], to)
    there = len(found) - copied
    already = f"; {there} {'was' if there == 1 else 'were'} there already" if there else ""
    print(f"{counted(copied, 'run')} exported to {to}, {size / 1e3:,.0f} KB{already}")
    return 0


def _print(found: list[Summary]) -> None:
    from rich.console import Console

    from twofold.experiments.runs import Run
    from twofold.report.tables import run_table

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no width to fit into
    console.print(run_table([Run.load(summary["folder"]) for summary in found]))
