"""`twofold runs`: list, show, verify, remove, export, import and merge the runs of stores."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from twofold.cli.flags import (
    FILTERS,
    add_filters,
    add_own_settings,
    given_filters,
    given_own_settings,
)
from twofold.cli.output import no_runs
from twofold.cli.parsing import Parser, folder
from twofold.cli.selecting import filters_of, narrowed
from twofold.errors import UserError
from twofold.text import counted, inert

if TYPE_CHECKING:
    from twofold.experiments.runs import Run
    from twofold.experiments.store import Store

EXAMPLES = """examples:
  twofold runs --method er                           what there is
  twofold runs verify --runs replication/runs/replication
  twofold runs export --to published --benchmark rotated-mnist
  twofold runs merge shard-1 shard-2 shard-3 --out runs
  twofold runs import curves.csv --benchmark mine --method "my idea" --seed 0 --set width=64
"""


class Entry(NamedTuple):
    """A run and its place. A damaged run may be unreadable."""

    place: Path
    run: Run | None


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "runs",
        help="list, show, verify, remove, export, merge or import finished runs",
        description="List the runs of a store, show them in full, verify their checksums, remove "
        "them, or export them:\nadd them to an archive, small enough to be published, with all "
        "that tables, figures and the page show.\nMerge stores and archives into one store, which "
        "keeps all of their runs.\nOr import curves of a program that is not "
        "twofold: a CSV, TSV or Parquet table, or TensorBoard's event files\n"
        "(docs/your-own-loop.md).\nFilters and names (a folder's, or its last ten "
        "letters) select runs.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=act, parser=parser)
    actions = ("list", "show", "verify", "remove", "export", "merge", "import")
    add = parser.add_argument
    add("action", nargs="?", default="list", choices=actions, metavar="|".join(actions))
    add("names", nargs="*", metavar="RUN", help="only these; for import, files; for merge, stores")
    add("--runs", type=folder, default=Path("runs"), metavar="DIR", help="the run store (runs)")
    add("--to", type=folder, metavar="DIR", help="the archive to export to")
    add("--out", type=folder, metavar="DIR", help="the store to merge into")
    add("--json", action="store_true", help="one JSON object per run, on one line")
    imports = parser.add_argument_group("curves to import")
    add = imports.add_argument
    add("--columns", metavar="NAME,...", help="the columns with a task's values, in their order")
    add("--switches", metavar="N,...", help="iterations after which a new task began")
    add("--scale", metavar="X", help="multiply values, by 100 for shares (default: 1)")
    add("--measure", metavar="WORD", help="what the values are, such as reward (accuracy)")
    values = parser.add_argument_group("only runs with these values; for import, values of the run")
    add_filters(values, FILTERS)
    add_own_settings(values, "a setting of your own")


def act(args: argparse.Namespace) -> int:
    from twofold.experiments.store import Store

    if (args.action == "export") != (args.to is not None):
        raise UserError("`twofold runs export` needs --to DIR, and no other action takes it")
    if (args.action == "merge") != (args.out is not None):
        raise UserError("`twofold runs merge` needs --out DIR, and no other action takes it")
    if args.action == "import":
        return _import(args)
    for flag in ("columns", "switches", "scale", "measure"):
        if getattr(args, flag) is not None:
            raise UserError(f"--{flag} is for `twofold runs import`")
    if args.action == "merge":
        return _merge(args)
    if not args.runs.is_dir():
        raise no_runs(args.runs, "twofold run")
    store = Store(args.runs)
    stored = _all(store) if args.action == "verify" else _readable(store, args.action)
    if not stored:
        raise no_runs(args.runs, "twofold run")
    chosen = _named(
        narrowed(stored, args, lambda each: each.run.config if each.run else None), args
    )
    if args.action == "verify":
        return _verify(store, [entry.place for entry in chosen])
    if args.action == "remove":
        return _remove(store, chosen, args)
    if args.action == "export":
        return _export(chosen, args.to)
    return _print(chosen, args)


def _readable(store: Store, action: str) -> list[Entry]:
    """Return the runs that can be read; their curves as well if the action needs them."""
    runs = store.runs(curves=action in ("show", "export"))
    return [Entry(run.folder, run) for run in runs if run.folder is not None]


def _all(store: Store) -> list[Entry]:
    """Return all runs of a store, damaged ones included."""
    from twofold.experiments.runs import Run

    entries = []
    for place in store.folders():
        try:
            entries.append(Entry(place, Run.load(place)))
        except UserError:
            entries.append(Entry(place, None))
    return entries


def _named(entries: list[Entry], args: argparse.Namespace) -> list[Entry]:
    for name in args.names:
        if not any(_is(entry, name) for entry in entries):
            raise UserError(f"there is no run {name!r} in {args.runs}: `twofold runs` lists them")
    names = args.names
    return [entry for entry in entries if not names or any(_is(entry, name) for name in names)]


def _is(entry: Entry, name: str) -> bool:
    place = entry.place.name
    return place == Path(name).name or place.endswith(f"-{name}")


def _verify(store: Store, places: list[Path]) -> int:
    damaged = store.damaged(places)
    for place, why in damaged.items():
        print(f"{inert(str(place))}: {why}")
    sound = len(places) - len(damaged)
    verb = "matches its checksums" if sound == 1 else "match their checksums"
    print(f"{sound} of {counted(len(places), 'run')} {verb}")
    return 1 if damaged else 0


def _remove(store: Store, chosen: list[Entry], args: argparse.Namespace) -> int:
    if not (args.names or filters_of(args)):
        raise UserError("name the runs to remove, or use filters such as --method er")
    for entry in chosen:
        store.remove(entry.place)
    print(f"{counted(len(chosen), 'run')} removed")
    return 0


def _export(chosen: list[Entry], to: Path) -> int:
    from twofold.experiments.export import export

    added, size = export([entry.place for entry in chosen], to)
    present = len(chosen) - added
    remark = f"; {present} {'was' if present == 1 else 'were'} there already" if present else ""
    print(f"{counted(added, 'run')} exported to {to}, {size / 1e3:,.0f} KB{remark}")
    return 0


def _merge(args: argparse.Namespace) -> int:
    from twofold.experiments.merging import merge

    if not args.names:
        raise UserError("name the stores to merge: `twofold runs merge STORE... --out DIR`")
    if filters_of(args):
        raise UserError("merge takes whole stores: leave filters such as --method out")
    merged = merge([folder(name) for name in args.names], args.out)
    for remark in merged.remarks:
        print(f"twofold: {inert(remark)}", file=sys.stderr)
    there = f"; {merged.present} {'was' if merged.present == 1 else 'were'} there already"
    remark = there if merged.present else ""
    print(f"{counted(merged.added, 'run')} merged into {args.out}{remark}")
    return 0


def _import(args: argparse.Namespace) -> int:
    """Add curves of a program that is not twofold to the store."""
    from twofold.experiments.importing import import_curves
    from twofold.experiments.store import Store

    given = given_filters(args, FILTERS)
    for name, values in given.items():
        if len(values) > 1:
            raise UserError(f"an imported run has one {name.replace('_', ' ')}, not {len(values)}")
    one = {name: values[0] for name, values in given.items()}
    named = {name: one.pop(name, None) for name in ("benchmark", "method", "seed")}
    evaluation = {name: one.pop(f"eval_{name}", None) for name in ("schedule", "size")}
    if not args.names:
        raise UserError("name the files to import: `twofold runs import curves.csv`")
    split = args.switches.split(",") if args.switches else None
    store = Store(args.runs)
    store.prepare()
    runs = [
        run
        for file in args.names
        for run in import_curves(
            Path(file),
            **named,
            **evaluation,
            settings={**one, **given_own_settings(args)},
            columns=args.columns.split(",") if args.columns else None,
            switches=split and [number("switches", text, int) for text in split],
            scale=None if args.scale is None else number("scale", args.scale, float),
            **({"measure": args.measure} if args.measure else {}),
        )
    ]
    for run in runs:
        if store.find(run.config) is not None:
            identity = run.config.identity()
            raise UserError(
                f"{run!r} is in {args.runs}: `twofold runs remove {identity} --runs {args.runs}` "
                "removes it"
            )
    for run in runs:
        store.save(run)
    _print_table(runs)
    print(f"{counted(len(runs), 'run')} imported into {args.runs}")
    return 0


def number(name: str, text: str, kind: Any) -> Any:
    from twofold.options import convert

    return convert(text.strip(), kind, name, text=True)


def _print(chosen: list[Entry], args: argparse.Namespace) -> int:
    runs = [entry.run for entry in chosen if entry.run is not None]
    if args.action == "show":
        for run in runs:
            print(json.dumps(_in_full(run), indent=None if args.json else 2))
    elif args.json:
        for run in runs:
            print(json.dumps({**run.summary, "folder": str(run.folder)}))
    else:
        _print_table(runs)
    return 0


def _in_full(run: Run) -> dict[str, Any]:
    """Return the summary, the measures and the gaps; docs/measures.md explains them."""
    raw = {} if run.raw_measures is None else {"raw_measures": run.raw_measures}
    gaps = [dataclasses.asdict(gap) for gap in run.gaps]
    place = {"folder": str(run.folder)}
    return {**run.summary, **place, "measures": run.measures, **raw, "gaps": gaps}


def _print_table(runs: list[Run]) -> None:
    from twofold.report.terminal import run_table, whole_console

    whole_console().print(run_table(runs))
