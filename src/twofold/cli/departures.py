"""`twofold departures`: the effects of departures from papers' texts."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import Help, add_output_options, groups_in, write_text
from twofold.cli.parsing import Parser
from twofold.errors import UserError

PICTURES = (".png", ".svg", ".pdf")
EXAMPLES = """
examples:
  twofold run rotated-mnist er --seeds 5             according to the text
  twofold run rotated-mnist er --seeds 5 --memory-grouping class
  twofold departures                                 the effect of D1 alone
  twofold departures -o departures.png               beside references, as a figure
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "departures",
        help="the effects of departures from papers' texts",
        description="Compare runs that depart from a paper's text, as the code behind its numbers "
        "does (docs/profiles.md), with runs that follow the text and are the same in everything "
        "else, paired by seed.",
        epilog=EXAMPLES,
        add_help=False,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("-h", "--help", action=Help, listed=_listed)
    add_output_options(parser)


def _listed() -> list[str]:
    from twofold.experiments.profiles import departures

    return ["departures:", *(f"  {name:8}{each.words}" for name, each in departures().items())]


def act(args: argparse.Namespace) -> None:
    from twofold.compare.departures import effects
    from twofold.report.departures import render

    all_effects = effects(groups_in(args.runs, "twofold run"))
    if not all_effects:
        raise UserError(
            f"no runs in {args.runs} to compare: a method according to the text and with a "
            "departure are needed, such as er and er --memory-grouping class"
        )
    if args.output and args.output.suffix.lower() in PICTURES:
        from twofold.drawing.style import save_figure
        from twofold.report.figures.departures import departures_figure

        save_figure(departures_figure(all_effects), args.output)
        print(f"The figure is in {args.output}")
    else:
        write_text(render, all_effects, args)
