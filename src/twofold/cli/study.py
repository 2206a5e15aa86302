"""`twofold study`: list, show and run whole grids of runs, such as the paper's tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twofold.cli.forecast import add_dry_run, foretell
from twofold.cli.making import add_work_options, make_all
from twofold.cli.parsing import Parser, at_least_one, one_method, real, seed_list, whole
from twofold.errors import UserError
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
NARROWING = ("benchmark", "mode", "method", "lr", "batch_size")
REPLACING = (
    "profile",
    "iterations",
    "tasks",
    "eval_every",
    "eval_schedule",
    "eval_size",
    "eval_precision",
    "memory_per_class",
    "device",
)


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
    listing = actions.add_parser("list", help="the studies there are, and how many runs each has")
    listing.set_defaults(act=list_studies, parser=listing)
    show = actions.add_parser("show", help="print a study's file: a start for one of your own")
    show.add_argument("study", metavar="STUDY", help="a study's name, or a TOML file")
    show.set_defaults(act=show_study, parser=show)
    _add_run(actions)


def _add_run(actions: Any) -> None:
    parser: Parser = actions.add_parser(
        "run",
        help="make all runs of a study",
        description="Make all runs of a study; those in the store already are not made again.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=run_study, parser=parser)
    parser.add_argument("study", metavar="STUDY", help="a study's name, or a TOML file")
    add_dry_run(parser)
    several = "only these, with commas between them"
    part = parser.add_argument_group("only a part of it")
    add = part.add_argument
    add("--benchmark", type=_listed(str), action="extend", metavar="NAME,...", help=several)
    add("--mode", type=_listed(str), action="extend", metavar="MODE,...", help=several)
    once = "only this one; may be repeated"
    add("--method", type=one_method, action="append", metavar="METHOD", help=once)
    add("--lr", type=_listed(real), action="extend", metavar="LR,...", help=several)
    add("--batch-size", type=_listed(whole), action="extend", metavar="N,...", help=several)
    seeds = part.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=seed_list, action="extend", metavar="N,...", help=several)
    seeds.add_argument("--seeds", type=at_least_one, metavar="N", help="its first N seeds")
    add = parser.add_argument_group("for all runs, whatever the study says").add_argument
    add("--profile", help="paper (the text) or published (the code)")
    add("--iterations", type=whole, metavar="N", help="at most N a task")
    add("--tasks", type=whole, metavar="N", help="only the first N tasks")
    add("--eval-every", type=whole, metavar="N", help="judge after every N iterations")
    add("--eval-schedule", metavar="SCHEDULE", help="every, or such as dense:100:10")
    add("--eval-size", type=whole, metavar="N", help="test images a task")
    add("--eval-precision", metavar="PRECISION", help="fp32, or bf16")
    add("--memory-per-class", type=whole, metavar="N", help="examples kept")
    add("--device", help="cpu, cuda, ...")
    add("--plugin", action="append", default=[], metavar="FILE.py", help="your own components")
    add_work_options(parser)


def _listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """`0.1,0.01` as [0.1, 0.01]."""

    def convert(text: str) -> list[Any]:
        return [kind(word.strip()) for word in text.split(",")]

    return convert


def list_studies(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    for study in map(studies.load, studies.names()):
        count = len(study.configs())
        print(f"{study.name:17}{count:5} {'run ' if count == 1 else 'runs'}  {study.title}")


def show_study(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    print(studies.text_of(args.study), end="")


def run_study(args: argparse.Namespace) -> int:
    configs = _chosen(args).configs()
    if args.dry_run:
        foretell(args.study, configs, args)
        return 0
    return make_all(configs, args)


def _chosen(args: argparse.Namespace) -> Study:
    from twofold.experiments import studies

    study = studies.load(args.study, args.plugin)
    study = study.narrowed({key: getattr(args, key) for key in NARROWING if getattr(args, key)})
    if args.seed:
        study = study.seeded(args.seed)
    if args.seeds:
        if args.seeds > len(study.seeds):
            seeds = counted(len(study.seeds), "seed")
            raise UserError(f"{study.name} has {seeds}, not {args.seeds}")
        study = study.seeded(study.seeds[: args.seeds])
    replaced = {key: getattr(args, key) for key in REPLACING if getattr(args, key) is not None}
    return study.replacing(replaced) if replaced else study
