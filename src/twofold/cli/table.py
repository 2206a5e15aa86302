"""`twofold table`: tables of studies from finished runs."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import Help, add_output_options, groups_in, write_text
from twofold.cli.parsing import Parser
from twofold.errors import UserError, unknown

EXAMPLES = """
examples:
  twofold table main                                 from the runs in runs/
  twofold table main --profile published -o main.tex
  twofold table appendix --runs store --format csv
  twofold table trajectories --metrics min,avg,residual,gap_depth
  twofold table runs --runs store                    all methods of the store, your own included
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "table",
        help="a paper's table, or one of all runs",
        description="Fill a paper's table from finished runs: mean and standard error over seeds, "
        "beside the numbers that the paper prints.\nThe table `runs` shows all methods of a store. "
        "docs/tables.md explains how to read them.",
        epilog=EXAMPLES,
        add_help=False,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("-h", "--help", action=Help, listed=_listed)
    parser.add_argument("table", metavar="TABLE", help="its name, such as main; see below")
    parser.add_argument("--profile", default="paper", help="(default: paper)")
    parser.add_argument(
        "--metrics",
        type=lambda text: text.split(","),
        default=(),
        metavar="NAME,...",
        help="only these of the table's, such as min,avg",
    )
    add_output_options(parser)


def _listed() -> list[str]:
    from twofold.report.tables import tables
    from twofold.report.tables.runs import NAME, TITLE

    titles = {name: layout.title for name, layout in tables().items()} | {NAME: TITLE}
    return ["tables:", *(f"  {name:22}{title}" for name, title in titles.items())]


def act(args: argparse.Namespace) -> None:
    from twofold.experiments import profiles
    from twofold.report.tables import render, runs_table, study_table, tables
    from twofold.report.tables.runs import NAME

    if args.profile not in profiles.names():
        raise unknown("profile", args.profile, profiles.names())
    if args.table == NAME:
        every = runs_table(groups_in(args.runs, "twofold run"), args.profile, args.metrics)
        if not every.blocks:
            raise UserError(f"no run in {args.runs} has the profile {args.profile}")
        return write_text(render, every, args)
    layout = tables().find(args.table)
    command = f"twofold study run {layout.study}"
    command += "" if args.profile == profiles.DEFAULT else f" --profile {args.profile}"
    table = study_table(args.table, groups_in(args.runs, command), args.profile, args.metrics)
    if not table.blocks:
        raise UserError(f"no run in {args.runs} belongs to this table: `{command}` trains them")
    return write_text(render, table, args)
