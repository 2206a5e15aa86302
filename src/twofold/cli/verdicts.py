"""`twofold verdicts`: verdicts of finished runs on papers' hypotheses."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import Help, add_output_options, groups_in, write_text
from twofold.cli.parsing import Parser
from twofold.errors import UserError, unknown


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "verdicts",
        help="what finished runs say about hypotheses",
        description="Compare each routine with plain SGD on the same objective, paired by seed, "
        "for the hypotheses of papers. The comparisons that a study declares are primary, all "
        "others exploratory. Of several learning rates and batch sizes, the one at which the plain "
        "objective ends highest counts. docs/tables.md explains the numbers.",
        add_help=False,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("-h", "--help", action=Help, listed=_listed)
    parser.add_argument("--profile", help="only runs of this profile")
    parser.add_argument("--hypothesis", metavar="NAME", help="only the verdicts on this one (all)")
    parser.add_argument(
        "--study", metavar="NAME", help="whose comparisons are primary: a name or file.toml (all)"
    )
    parser.add_argument(
        "--all-settings",
        action="store_true",
        help="compare at each learning rate and batch size, and correct for all of them",
    )
    add_output_options(parser)


def _listed() -> list[str]:
    from twofold.compare.hypotheses import hypotheses

    return [
        "hypotheses:",
        *(
            f"  {name:8}{each.words} ({each.metric.upper()}, {' and '.join(each.modes)})"
            for name, each in hypotheses().items()
        ),
    ]


def act(args: argparse.Namespace) -> None:
    from twofold.compare.verdicts import findings
    from twofold.experiments import profiles
    from twofold.report.verdicts import render

    if args.profile not in (None, *profiles.names()):
        raise unknown("profile", args.profile, profiles.names())
    groups = [
        group
        for group in groups_in(args.runs, "twofold run")
        if args.profile in (None, group.config.profile)
    ]
    results = findings(groups, args.all_settings, args.study)
    if not results.verdicts and not results.unpaired:
        raise UserError(
            f"no runs in {args.runs} to compare: a routine and plain SGD on one objective are "
            "needed, such as er+gem and er"
        )
    if args.hypothesis:
        results = results.on(args.hypothesis)
    write_text(render, results, args)
