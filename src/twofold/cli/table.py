"""`twofold table`: the paper's tables from finished runs."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import add_output_options, cells_in, write_text
from twofold.cli.parsing import Parser
from twofold.errors import UserError, unknown

FORMATS = ("md", "latex", "csv", "json", "html")
EXAMPLES = """examples:
  twofold table main                                 from the runs in runs/
  twofold table main --profile published -o main.tex
  twofold table appendix --runs store --format csv
  twofold table trajectories --metrics min,avg,residual,gap_depth
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "table",
        help="make a table of the paper from finished runs",
        description="Make a table of the paper from finished runs: mean and standard error over "
        "seeds, beside the paper's own numbers. docs/tables.md tells how to read it.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument(
        "table", metavar="TABLE", help="main, sota, timing, gamma, appendix or trajectories"
    )
    parser.add_argument("--profile", default="paper", help="paper (default) or published")
    parser.add_argument(
        "--metrics",
        type=lambda text: text.split(","),
        default=(),
        metavar="NAME,...",
        help="only these of the table's, such as min,avg",
    )
    add_output_options(parser, FORMATS)


def act(args: argparse.Namespace) -> None:
    from twofold.experiments import profiles
    from twofold.report.layouts import TABLES
    from twofold.report.studytables import study_table

    if args.table not in TABLES:
        raise unknown("table", args.table, TABLES)
    if args.profile not in profiles.NAMES:
        raise unknown("profile", args.profile, profiles.NAMES)
    make = f"twofold study run {TABLES[args.table].study}"
    make += "" if args.profile == "paper" else f" --profile {args.profile}"
    table = study_table(args.table, cells_in(args.runs, make), args.profile, args.metrics)
    if not table.blocks:
        raise UserError(f"no run in {args.runs} belongs to this table: `{make}` makes them")
    write_text(table.render, args, FORMATS)
