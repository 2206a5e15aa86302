"""`twofold study`: list, show, run and tune whole grids of runs, such as the paper's tables."""

from __future__ import annotations

import argparse
import shlex
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
from twofold.cli.work import MACHINES, add_work_flags, train
from twofold.errors import UserError
from twofold.experiments.options import Options, Work
from twofold.options import options
from twofold.text import counted, inert

if TYPE_CHECKING:
    from twofold.experiments.studies import Study
    from twofold.experiments.tuning import Tuning

EXAMPLES = """examples:
  twofold study run main --dry-run                   how many runs, how many done, how long
  twofold study run main --benchmark rotated-mnist --mode offline
  twofold study run gamma --method er --method 'er+gem(gamma=1,when=always)' --seeds 2
  twofold study run main --benchmark rotated-mnist --iterations 20 --seeds 1 --out tried
  twofold study run my.toml                          your own: see docs/studies.md
"""
TUNE_EXAMPLES = """examples:
  twofold study tune my.toml --vary lr=0.01,0.03,0.1
  twofold study tune my.toml --vary gem.gamma=0.1,0.5,1 --metric min --tasks 3
  twofold study tune my.toml --vary lr=0.01,0.1 --vary batch_size=10,64 --together
"""
TUNE_SEEDS = 2  # unless seeds are given
KNOWN = options(Options)
AXES = [option for option in FILTERS if option.axis and option.name != "seed"]
REPLACING = [option for option in KNOWN.values() if not option.axis]
REPLACED = "for all runs, whatever the study says"


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "study",
        help="list, show, run or tune whole grids of runs, such as the paper's tables",
        description="Grids of runs, such as the paper's tables: list them, show one, run or tune "
        "one.",
    )
    parser.set_defaults(parser=parser)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|run|tune", parser_class=Parser
    )
    listing = actions.add_parser("list", help="the studies, and how many runs each has")
    listing.set_defaults(act=list_studies, parser=listing)
    show = actions.add_parser("show", help="print a study's file: a start for one of your own")
    show.add_argument("study", metavar="STUDY", help="a study's name, or a TOML file")
    show.set_defaults(act=show_study, parser=show)
    _add_run(actions)
    _add_tune(actions)


def _add_run(actions: Any) -> None:
    parser: Parser = actions.add_parser(
        "run",
        help="train all runs of a study",
        description="Train all runs of a study; those in the store already are not trained again.",
        epilog=EXAMPLES + MACHINES,
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


def _add_tune(actions: Any) -> None:
    parser: Parser = actions.add_parser(
        "tune",
        help="choose options of a study's methods on held-out training images",
        description="Choose options of a study's methods, on held-out training images of the "
        "first tasks and with seeds that the study does not report. The choices and their reasons "
        "are written into the study's file, which `twofold study run` follows.",
        epilog=TUNE_EXAMPLES,
    )
    parser.set_defaults(act=tune_study, parser=parser)
    parser.add_argument("study", metavar="FILE", help="the study's TOML file")
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=V,V,...",
        help="the values of an option of a run (lr) or of a component (gem.gamma); may be repeated",
    )
    parser.add_argument("--metric", default="avg", help="the measure to maximise (default: avg)")
    parser.add_argument(
        "--together", action="store_true", help="one choice for all methods, by their mean"
    )
    group = parser.add_argument_group("how candidates are trained")
    add_seeds(group, "these seeds, which the study does not report", "this many (2)")
    group.add_argument("--tasks", metavar="N", help="the first N tasks (2)")
    group.add_argument(
        "--validation", metavar="FRACTION", help="the share of training images held out (0.1)"
    )
    add_work_flags(parser)


def list_studies(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    for study in map(studies.load, studies.names()):
        count = len(study.configs())
        print(f"{study.name:17}{count:5} {'run ' if count == 1 else 'runs'}  {study.title}")


def show_study(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    for line in studies.text_of(args.study).splitlines():
        print(inert(line.expandtabs()))


def run_study(args: argparse.Namespace) -> int:
    from twofold.experiments.running import as_path, listed

    configs = planned(listed(_chosen(args), as_path(args.data)), args)
    if args.dry_run:
        print_forecast(args.study, configs, args)
        return 0
    return train(configs, args)


def tune_study(args: argparse.Namespace) -> None:
    from twofold.experiments import studies
    from twofold.experiments.tuned import write_choices
    from twofold.experiments.tuning import Tuning, own_file, read_vary, tune, unreported_seeds

    file = own_file(args.study)
    study = studies.load(args.study, tuned=False)
    seeds = given_filters(args, [KNOWN["seed"]]).get("seed")
    tuning = Tuning(
        read_vary(args.vary),
        seeds or unreported_seeds(study, seed_count(args) or TUNE_SEEDS),
        metric=args.metric,
        together=args.together,
        **given(args, [KNOWN["tasks"], KNOWN["validation"]]),
    )
    work = {"out": "tuning", **given(args, options(Work).values())}
    choices = tune(study, tuning, **work, progress=True)
    write_choices(file, choices, tune_command(args.study, tuning))
    for choice in choices:
        use = ", ".join(f"{name} {value}" for name, value in choice.use.items())
        print(f"{choice.place}: {use}\n  {choice.why}")
    print(f"The choices are in {args.study}")


def tune_command(study: str, tuning: Tuning) -> str:
    """Return the command that repeats a tuning."""
    vary = [f"{name}={','.join(map(str, values))}" for name, values in tuning.vary.items()]
    words = [word for text in vary for word in ("--vary", text)]
    words += ["--metric", tuning.metric] + ["--together"] * tuning.together
    words += ["--seed", ",".join(map(str, tuning.seeds)), "--tasks", str(tuning.tasks)]
    words += ["--validation", str(tuning.validation)]
    return shlex.join(["twofold", "study", "tune", study, *words])


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
