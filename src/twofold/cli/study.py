"""`twofold study`: list, show and run whole grids of runs, such as the paper's tables."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twofold.cli.making import add_work_options, make_all
from twofold.cli.parsing import Parser, at_least_one, real, seed_list, whole
from twofold.errors import UserError

if TYPE_CHECKING:
    from twofold.experiments.config import Config
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
    parser.add_argument("--dry-run", action="store_true", help="say what there is to do, and stop")
    several = "only these, with commas between them"
    part = parser.add_argument_group("only a part of it")
    add = part.add_argument
    add("--benchmark", type=_listed(str), action="extend", metavar="NAME,...", help=several)
    add("--mode", type=_listed(str), action="extend", metavar="MODE,...", help=several)
    add("--method", action="append", metavar="METHOD", help="only this one; may be repeated")
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
        print(f"{study.name:17}{len(study.configs()):5} runs  {study.title}")


def show_study(args: argparse.Namespace) -> None:
    from twofold.experiments import studies

    print(studies.text_of(args.study), end="")


def run_study(args: argparse.Namespace) -> int:
    configs = _chosen(args).configs()
    if args.dry_run:
        _foretell(configs, args)
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
            raise UserError(f"{study.name} has {len(study.seeds)} seeds, not {args.seeds}")
        study = study.seeded(study.seeds[: args.seeds])
    replaced = {key: getattr(args, key) for key in REPLACING if getattr(args, key) is not None}
    return study.replacing(replaced) if replaced else study


def _foretell(configs: Sequence[Config], args: argparse.Namespace) -> None:
    """Say how many runs there are, how many are done, and how long the others will take."""
    from twofold.experiments.estimate import spoken

    left = _seconds_left(configs, args)
    groups: dict[tuple[str, str, str], list[float | None]] = {}
    for config, seconds in zip(configs, left, strict=True):
        groups.setdefault((config.benchmark, config.mode, config.method), []).append(seconds)
    if args.json:
        _print_objects(groups)
        return
    _print_lines(groups)
    to_make = [seconds for seconds in left if seconds is not None]
    done = len(left) - len(to_make)
    print(f"{args.study}: {len(left)} runs, {done} done, {len(to_make)} to make")
    if to_make:
        workers = args.workers or os.cpu_count() or 1
        time = spoken(max(sum(to_make) / workers, max(to_make)))
        crew = f"{workers} worker{'s' if workers > 1 else ''}"
        print(f"About {time} on the CPU with {crew}: an estimate, made on this machine.")


def _print_objects(groups: Mapping[tuple[str, str, str], list[float | None]]) -> None:
    for (benchmark, mode, method), runs in groups.items():
        names = {"benchmark": benchmark, "mode": mode, "method": method}
        counts = {"runs": len(runs), "done": runs.count(None), "seconds": _total(runs)}
        print(json.dumps({**names, **counts}))


def _print_lines(groups: Mapping[tuple[str, str, str], list[float | None]]) -> None:
    from twofold.experiments.estimate import spoken

    widths = [max(map(len, column)) for column in zip(*groups, strict=True)]
    for group, runs in groups.items():
        named = "  ".join(f"{name:{width}}" for name, width in zip(group, widths, strict=True))
        done = runs.count(None)
        time = "" if done == len(runs) else f", {spoken(_total(runs))} of one core"
        print(f"{named}  {len(runs):4} runs, {done:4} done{time}")


def _seconds_left(configs: Sequence[Config], args: argparse.Namespace) -> list[float | None]:
    """Of each run, on one core; None for those that are in the store."""
    from twofold.experiments.estimate import Estimator
    from twofold.experiments.store import Store

    there = {folder.name.rsplit("-", 1)[-1] for folder in Store(args.out).folders()}
    estimator = Estimator(args.data)
    return [None if c.identity() in there else estimator.seconds(c) for c in configs]


def _total(runs: Sequence[float | None]) -> float:
    return sum(seconds for seconds in runs if seconds is not None)
