"""`twofold compare`: compare any methods or settings, paired by seed."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.output import add_metrics, add_output_options, write_text
from twofold.cli.parsing import Parser
from twofold.cli.selecting import add_selection, selected_runs

EXAMPLES = """examples:
  twofold compare er er+gem er+hold                  each minus er, in MIN and AVG
  twofold compare er der --may-differ lr --metrics avg,forgetting
  twofold compare sgd adam --by optimizer --method er --may-differ lr
  twofold compare 'per-class-task(100)' 'reservoir(2000)' --by memory --benchmark split-cifar100
  twofold compare 64 128 --by width -o width.tex     a setting of your own (docs/your-own-loop.md)
"""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "compare",
        help="compare methods, or anything else that varies, paired by seed",
        description="Compare methods, or values of any setting, with the first one: mean "
        "differences over the seeds that both have,\nintervals, p and power, and a sentence for "
        "each. All other settings must be equal; if they leave a choice,\nthe command says what to "
        "add. docs/tables.md explains the numbers.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=act, parser=parser)
    add = parser.add_argument
    add("values", nargs="+", metavar="METHOD", help="the baseline first; with --by, values of it")
    add("--by", default="method", metavar="NAME", help="the setting to compare by (method)")
    add_metrics(parser, "these measures (min,avg); docs/measures.md has all")
    add(
        "--may-differ",
        type=lambda text: text.split(","),
        default=(),
        metavar="NAME,...",
        help="settings that need not be equal, such as lr",
    )
    add_output_options(parser)
    add_selection(parser)


def act(args: argparse.Namespace) -> None:
    from twofold.compare.asked import comparison
    from twofold.report.comparison import render

    compared = comparison(
        selected_runs(args, args.metrics),
        *args.values,
        by=args.by,
        metrics=args.metrics,
        may_differ=args.may_differ,
    )
    write_text(render, compared, args)
