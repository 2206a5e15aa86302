"""`twofold departures`: what the authors' departures from the paper's text do."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import add_output_options, cells_in, write_text
from twofold.cli.parsing import Parser
from twofold.errors import UserError

FORMATS = ("md", "csv", "json")
PICTURES = (".png", ".svg", ".pdf")
EXAMPLES = """examples:
  twofold run rotated-mnist er --seeds 5             by the text
  twofold run rotated-mnist er --seeds 5 --memory-grouping class
  twofold departures                                 what D1 does, alone
  twofold departures -o departures.png               beside the paper's numbers, as a figure
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "departures",
        help="what the authors' departures from the text do",
        description="Compare runs that depart from the paper's text as the authors' code does "
        "(D1, D2, ...: docs/profiles.md), in one thing or in several, with those that follow it "
        "and are the same in all else, paired by seed.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=act, parser=parser)
    add_output_options(parser, FORMATS)


def act(args: argparse.Namespace) -> None:
    from twofold.report.departures import effects, render

    found = effects(cells_in(args.runs, "twofold study run main"))
    if not found:
        raise UserError(
            f"no runs in {args.runs} to compare: a method by the text and with a departure are "
            "needed, such as er and er --memory-grouping class"
        )
    if args.output and args.output.suffix.lower() in PICTURES:
        from twofold.report.figures.departures import departures_figure
        from twofold.report.figures.style import save_figure

        save_figure(departures_figure(found), args.output)
        print(f"The figure is in {args.output}")
    else:
        write_text(lambda format: render(found, format), args, FORMATS)
