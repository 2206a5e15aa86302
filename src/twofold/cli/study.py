"""`twofold study`: list, show and run whole grids of runs, such as the paper's tables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from twofold.cli.flags import (
    FILTERS,
    add_filters,
    add_flags,
    add_seeds,
    given,
    given_filters,
    seed_count,
)
from twofold.cli.forecast import add_dry_run, planned, print_forecast
from twofold.cli.parsing import Parser
from twofold.cli.work import add_work_flags, train
from twofold.errors import UserError
from twofold.experiments.options import Options
from twofold.options import options
from twofold.text import counted

if TYPE_CHECKING:
    from twofold.experiments.studies import Study

EXAMPLES = """examples:
  twofold study run main --dry-run                   how many runs, how many done, how long
  twofold study run main --benchmark rotated-mnist --mode offline
  twofold study run gamma --method er --method 'er+gem(gamma=1,when=always)' --seeds 2
  twofold study run main --benchmark rotated-mnist --iterations 20 --seeds 1 --out tried
  twofold study run my.toml                          your own: see docs/studies.md
"""
KNOWN = options(Options)
AXES = [option for option in FILTERS if option.axis and option.name != "seed"]
REPLACING = [option for option in KNOWN.values() if not option.axis]
REPLACED = "for all runs, whatever the study says"


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "study",
        help="list, show or run whole grids of runs, such as the paper's tables",
        description="Grids of runs, such as the paper's tables: list them, show one, or run one.",
    )
    parser.set_defaults(parser=parser)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|run", parser_class=Parser
    )
    listing = actions.add_parser("list", help="the studies, and how many runs each has")
    listing.set_defaults(act=list_studies, parser=listing)
    show = actions.add_parser("show", help="print a study's file: a start for one of your own")
    show.add_argument("study", metavar="STUDY", help="a study's name, or a TOML file")
    show.set_defaults(act=show_study, parser=show)
    _add_run(actions)


def _add_run(actions: Any) -> None:
    parser: Parser = actions.add_parser(
        "run",
        help="train all runs of a study",
        description="Train all runs of a study; those in the store already are not trained again.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=run_study, parser=parser)
    parser.add_argument("study", metavar="STUDY", help="a study's name, or a TOML file")
    add_dry_run(parser)
    part = parser.add_argument_group("only a part of it")
    explanation = "only these, with commas between them"
    add_filters(part, AXES, explanation)
    add_seeds(part, explanation, "its first N seeds")
    replaced = parser.add_argument_group(REPLACED)
    add_flags(lambda title: replaced, REPLACING)
    add_work_flags(parser)


def list_studies(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    for study in map(studies.load, studies.names()):
        count = len(study.configs())
        print(f"{study.name:17}{count:5} {'run ' if count == 1 else 'runs'}  {study.title}")


def show_study(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    print(studies.text_of(args.study), end="")


def run_study(args: argparse.Namespace) -> int:
    from twofold.experiments.running import as_path, listed

    configs = planned(listed(_chosen(args), as_path(args.data)), args)
    if args.dry_run:
        print_forecast(args.study, configs, args)
        return 0
    return train(configs, args)


def _chosen(args: argparse.Namespace) -> Study:
    from twofold.experiments import studies

    replaced = given(args, REPLACING)
    study = studies.load(args.study, replaced.pop("plugins", []))
    study = study.narrowed(given_filters(args, AXES))
    seeds, count = given_filters(args, [KNOWN["seed"]]).get("seed"), seed_count(args)
    if seeds:
        study = study.seeded(seeds)
    if count:
        if count > len(study.seeds):
            count_text = counted(len(study.seeds), "seed")
            raise UserError(f"{study.name} has {count_text}, not {count}")
        study = study.seeded(study.seeds[:count])
    return study.replacing(replaced) if replaced else study
