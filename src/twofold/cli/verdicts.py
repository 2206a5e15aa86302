"""`twofold verdicts`: what finished runs say of the paper's hypotheses."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import add_output_options, cells_in, write_text
from twofold.cli.parsing import Parser
from twofold.errors import UserError, unknown

FORMATS = ("md", "csv", "json")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "verdicts",
        help="what finished runs say of the paper's hypotheses",
        description="Compare each routine with plain SGD on the same objective, paired by seed, "
        "for the paper's hypotheses: H1 (MIN), H2 (AVG, online) and H3 (AVG, offline). Of several "
        "learning rates and batch sizes, that at which the plain objective ends highest counts. "
        "docs/tables.md tells what the numbers mean.",
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("--profile", help="only runs of this profile: paper or published")
    parser.add_argument("--all-settings", action="store_true", help="all of them, as one family")
    add_output_options(parser, FORMATS)


def act(args: argparse.Namespace) -> None:
    from twofold.experiments import profiles
    from twofold.report.verdicts import render, unpaired, verdicts

    if args.profile not in (None, *profiles.NAMES):
        raise unknown("profile", args.profile, profiles.NAMES)
    cells = [
        cell
        for cell in cells_in(args.runs, "twofold study run main")
        if args.profile in (None, cell.config.profile)
    ]
    found, missing = verdicts(cells, args.all_settings), unpaired(cells)
    if not found and not missing:
        raise UserError(
            f"no runs in {args.runs} to compare: a routine and plain SGD on one objective are "
            "needed, such as er+gem and er"
        )
    write_text(lambda format: render(found, missing, format), args, FORMATS)
