"""`twofold table`: the runs of a store as a table, or tables of papers."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import Help, add_metrics, add_output_options, write_text
from twofold.cli.parsing import Parser
from twofold.cli.selecting import add_selection, selected_runs
from twofold.errors import UserError, unknown

EXAMPLES = """
examples:
  twofold table                                      all runs in runs/, your own included
  twofold table --runs store --metrics avg,forgetting,bwt --sort avg
  twofold table --benchmark rotated-mnist --memory 'reservoir(2000)' -o mine.tex
  twofold table main                                 the paper's table, beside its numbers
  twofold table main --profile published -o main.tex
  twofold table trajectories --metrics min,avg,residual,gap_depth
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "table",
        help="your runs as a table, or a paper's table filled with them",
        description="Show finished runs as a table: mean and standard error over seeds. Without a "
        "name, it has a row per method\nand setting and a column for everything that varies; what "
        "all rows share is stated above them.\nA paper's table has the numbers that the paper "
        "prints beside them. docs/tables.md explains how to read them.",
        epilog=EXAMPLES,
        add_help=False,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("-h", "--help", action=Help, listed=_listed)
    parser.add_argument(
        "table", nargs="?", metavar="TABLE", help="a paper's, such as main; see below"
    )
    add_metrics(parser, "these measures, such as min,avg,forgetting (docs/measures.md)")
    sort: Any = parser.add_argument(
        "--sort",
        type=lambda text: text.split(","),
        default=(),
        metavar="COLUMN,...",
        help="sort rows by a measure (the best first) or a setting; -avg is the other way round",
    )
    sort.dashed = True
    add_output_options(parser)
    add_selection(parser)


def _listed() -> list[str]:
    from twofold.report.tables import tables

    return ["tables:", *(f"  {name:22}{layout.title}" for name, layout in tables().items())]


def act(args: argparse.Namespace) -> None:
    if args.table is None:
        return _store(args)
    return _paper(args)


def _store(args: argparse.Namespace) -> None:
    from twofold.compare.groups import groups
    from twofold.compare.starts import one_start_per_seed
    from twofold.report.tables import render, store_table
    from twofold.report.tables.store import USUAL

    runs = selected_runs(args, args.metrics or USUAL)
    table = store_table(groups(one_start_per_seed(runs)), args.metrics, args.sort)
    write_text(render, table, args)


def _paper(args: argparse.Namespace) -> None:
    from twofold.compare.groups import groups
    from twofold.experiments import profiles
    from twofold.report.tables import render, study_table, tables

    layout = tables().find(args.table)
    if args.sort:
        raise UserError("--sort is for `twofold table` without a name: a paper has its own order")
    profile = _profile(args)
    command = f"twofold study run {layout.study}"
    command += "" if profile == profiles.DEFAULT else f" --profile {profile}"
    args.profile = None  # a table of a profile shows all runs that the profile would configure
    found = groups(selected_runs(args, args.metrics, command))
    table = study_table(args.table, found, profile, args.metrics)
    if not table.blocks:
        raise UserError(f"no run in {args.runs} belongs to this table: `{command}` trains them")
    write_text(render, table, args)


def _profile(args: argparse.Namespace) -> str:
    """Return the one profile of a paper's table."""
    from twofold.experiments import profiles

    given = [name for text in args.profile or () for name in text.split(",")]
    for name in given:
        if name not in profiles.names():
            raise unknown("profile", name, profiles.names())
    if len(given) > 1:
        raise UserError(f"a paper's table has one profile, not {len(given)}")
    return given[0] if given else profiles.DEFAULT
