"""The output of `run` and `study run` with --dry-run: the runs to train, and their time."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twofold.cli.flags import given
from twofold.cli.parsing import Parser
from twofold.experiments.options import Work
from twofold.options import options
from twofold.text import counted, spoken

if TYPE_CHECKING:
    from twofold.experiments.config import Config

Groups = Mapping[tuple[str, str, str], list[float | None]]  # benchmark, mode, method: seconds left


def add_dry_run(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what there is to do, and stop")


def planned(configs: list[Config], args: argparse.Namespace) -> list[Config]:
    """Return the runs of `--shard`, or of a plan that fits into the time of `--within`.

    The plan is printed.
    """
    work = given(args, options(Work).values())
    if args.shard is not None:
        from twofold.experiments.running import as_path
        from twofold.experiments.shards import part_of

        configs = part_of(configs, args.shard, as_path(work.get("data")), args.within)
        if not configs:
            print(f"shard {args.shard} is empty: there are fewer runs than shards", file=sys.stderr)
        args.shard = None  # the runs are those of the shard by now
        return configs
    if args.within is None:
        return configs
    from twofold.experiments.plans import fit
    from twofold.experiments.running import STORE, as_path
    from twofold.experiments.store import Store

    workers = work.get("workers") or os.cpu_count() or 1
    store = Store(work.get("out", STORE))
    tried = fit(configs, args.within, workers, store, as_path(work.get("data")))
    for plan in tried:
        mark = "->" if plan is tried[-1] else "  "
        print(f"{mark} {spoken(plan.seconds):>12}  {plan.reduction}", file=sys.stderr)
    args.within = None  # the runs are those of the plan by now
    return tried[-1].configs


def print_forecast(name: str, configs: Sequence[Config], args: argparse.Namespace) -> None:
    """Print how many runs there are, how many are done, and how long the others will take."""
    from twofold.experiments.estimate import command_seconds, seconds_left
    from twofold.experiments.running import STORE
    from twofold.experiments.store import Store

    work = given(args, options(Work).values())
    left = seconds_left(configs, Store(work.get("out", STORE)), work.get("data"))
    groups: dict[tuple[str, str, str], list[float | None]] = {}
    for config, seconds in zip(configs, left, strict=True):
        groups.setdefault((config.benchmark, config.mode, config.method), []).append(seconds)
    if args.json:
        _print_objects(groups)
        return
    _print_lines(groups)
    missing = [seconds for seconds in left if seconds is not None]
    done = len(left) - len(missing)
    print(f"{name}: {counted(len(left), 'run')}, {done} done, {len(missing)} to train")
    if missing:
        workers = work.get("workers") or os.cpu_count() or 1
        time = spoken(command_seconds(missing, workers))
        crew = counted(workers, "worker")
        print(f"About {time} on the CPU with {crew}: an estimate, measured on this machine.")


def _print_objects(groups: Groups) -> None:
    for (benchmark, mode, method), runs in groups.items():
        names = {"benchmark": benchmark, "mode": mode, "method": method}
        counts = {"runs": len(runs), "done": runs.count(None), "seconds": _total(runs)}
        print(json.dumps({**names, **counts}))


def _print_lines(groups: Groups) -> None:
    widths = [max(map(len, column)) for column in zip(*groups, strict=True)]
    for group, runs in groups.items():
        names = "  ".join(f"{name:{width}}" for name, width in zip(group, widths, strict=True))
        done = runs.count(None)
        time = "" if done == len(runs) else f", {spoken(_total(runs))} on one core"
        noun = "run, " if len(runs) == 1 else "runs,"
        print(f"{names}  {len(runs):4} {noun} {done:4} done{time}")


def _total(runs: Sequence[float | None]) -> float:
    return sum(seconds for seconds in runs if seconds is not None)
