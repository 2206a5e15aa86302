"""`twofold run`: train methods on a benchmark."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.forecast import add_dry_run, foretell
from twofold.cli.making import add_work_options, make_all
from twofold.cli.parsing import Parser, at_least_one, real, seed_list, whole

EXAMPLES = """examples:
  twofold run rotated-mnist er                       one run, as in the paper's main table
  twofold run rotated-mnist er er+gem --seeds 5      two methods, five seeds, one worker a core
  twofold run split-cifar100 bic+agem --mode online --profile published
  twofold run rotated-mnist 'er+gem(gamma=0.1,when=always)' --json
  twofold run split-cifar100 bic+agem --mode online --dry-run   how long that would take
"""
SCHEDULE = "every (default), or dense:100:10: each of a task's first 100, then every 10th"
PASSED = [
    "mode",
    "lr",
    "batch_size",
    "profile",
    "iterations",
    "tasks",
    "memory_per_class",
    "memory_grouping",
    "whitening",
    "momentum",
    "reset_momentum",
    "device",
    "eval_every",
    "eval_schedule",
    "eval_size",
    "eval_precision",
]


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "run",
        help="train methods on a benchmark, judging them after every iteration",
        description="Train methods on a benchmark, judging them after every iteration. A run that "
        "is in the store already is not made again. `twofold list` names what there is.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("benchmark", metavar="BENCHMARK", help="such as rotated-mnist")
    parser.add_argument("methods", metavar="METHOD", nargs="+", help="such as er+gem(gamma=0.5)")
    add_dry_run(parser)
    training = parser.add_argument_group("what to train")
    add = training.add_argument
    add("--mode", default="offline", help="offline (many passes; default) or online (one pass)")
    add("--lr", type=real, help="(default: the paper's, mostly 0.1 offline and 0.01 online)")
    add("--batch-size", type=whole, help="(default: 128 offline; 10 online, Mini-ImageNet 64)")
    seeds = training.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=seed_list, metavar="N,N,...", help="these seeds (142)")
    seeds.add_argument("--seeds", type=at_least_one, metavar="N", help="the first N of 142, 152...")
    add("--profile", default="paper", help="paper (the text; default) or published (the code)")
    add("--iterations", type=whole, metavar="N", help="at most N a task")
    add("--tasks", type=whole, metavar="N", help="only the first N tasks")
    add("--memory-per-class", type=whole, default=100, metavar="N", help="examples kept (100)")
    add("--memory-grouping", help="so many of each class-task (the paper), or class; see profiles")
    add("--whitening", help="with statistics of train (the paper), or published constants")
    add("--momentum", type=real, default=0.9, help="(default: 0.9)")
    add("--reset-momentum", action="store_true", help="set it to zero at every task switch")
    add("--device", default="cpu", help="cpu (default), cuda, ...")
    add("--plugin", action="append", default=[], metavar="FILE.py", help="your own components")
    add = parser.add_argument_group("how to judge it").add_argument
    add("--eval-every", type=whole, default=1, metavar="N", help="every so many iterations (1)")
    add("--eval-schedule", default="every", metavar="SCHEDULE", help=SCHEDULE)
    add("--eval-size", type=whole, default=1000, metavar="N", help="test images a task (1000)")
    add("--eval-precision", default="fp32", help="fp32 (default), or bf16 with checks: faster")
    add_work_options(parser)


def act(args: argparse.Namespace) -> int:
    from twofold.experiments.config import configure, paper_seeds

    options = {name: getattr(args, name) for name in PASSED}
    configs = [
        configure(args.benchmark, method, seed=seed, plugins=args.plugin, **options)
        for method in args.methods
        for seed in args.seed or paper_seeds(args.seeds or 1)
    ]
    configs = list({config.identity(): config for config in configs}.values())
    if args.dry_run:
        foretell(args.benchmark, configs, args)
        return 0
    return make_all(configs, args)
