"""`twofold run`: train methods on a benchmark."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.flags import add_flags, add_seeds, given, given_filters, groups_of, seed_count
from twofold.cli.forecast import add_dry_run, planned, print_forecast
from twofold.cli.parsing import Parser
from twofold.cli.work import MACHINES, add_work_flags, train
from twofold.experiments.options import Options
from twofold.options import options
from twofold.settings import EVALUATION, TRAINING

EXAMPLES = """examples:
  twofold run rotated-mnist er                       one run, as in the main table
  twofold run rotated-mnist er er+gem --seeds 5      two methods, five seeds, one worker per core
  twofold run split-cifar100 bic+agem --mode online --profile published
  twofold run rotated-mnist 'er+gem(gamma=0.1,when=always)' --json
  twofold run split-cifar100 bic+agem --mode online --dry-run   how long that would take
"""
KNOWN = options(Options)


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "run",
        help="train methods on a benchmark, evaluating them after every iteration",
        description="Train methods on a benchmark, evaluating them after every iteration. A run "
        "that is in the store already is not trained again. `twofold list` names what there is.",
        epilog=EXAMPLES + MACHINES,
    )
    parser.set_defaults(act=act, parser=parser)
    parser.add_argument("benchmark", metavar="BENCHMARK", help="such as rotated-mnist")
    parser.add_argument("methods", metavar="METHOD", nargs="+", help="such as er+gem(gamma=0.5)")
    add_dry_run(parser)
    group = groups_of(parser)
    add_seeds(group(TRAINING), "these seeds (142)", "the first N of 142, 152, ...")
    group(EVALUATION)
    add_flags(group, [option for name, option in KNOWN.items() if name != "seed"])
    add_work_flags(parser)


def act(args: argparse.Namespace) -> int:
    shared = given(args, [option for name, option in KNOWN.items() if name != "seed"])
    chosen, count = given_filters(args, [KNOWN["seed"]]).get("seed"), seed_count(args) or 1

    from twofold.experiments.config import configure, usual_seeds
    from twofold.experiments.running import as_path, listed

    seeds = chosen or usual_seeds(count)
    configs = listed(
        (
            configure(args.benchmark, method, seed=seed, **shared)
            for method in args.methods
            for seed in seeds
        ),
        as_path(args.data),
    )
    configs = planned(configs, args)
    if args.dry_run:
        print_forecast(args.benchmark, configs, args)
        return 0
    return train(configs, args)
