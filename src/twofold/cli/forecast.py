"""What `run` and `study run` say with --dry-run: what there is to do, and how long it takes."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twofold.cli.parsing import Parser
from twofold.text import counted

if TYPE_CHECKING:
    from twofold.experiments.config import Config

Groups = Mapping[tuple[str, str, str], list[float | None]]  # benchmark, mode, method: seconds left


def add_dry_run(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what there is to do, and stop")


def foretell(name: str, configs: Sequence[Config], args: argparse.Namespace) -> None:
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
    print(f"{name}: {counted(len(left), 'run')}, {done} done, {len(to_make)} to make")
    if to_make:
        workers = args.workers or os.cpu_count() or 1
        time = spoken(max(sum(to_make) / workers, max(to_make)))
        crew = counted(workers, "worker")
        print(f"About {time} on the CPU with {crew}: an estimate, made on this machine.")


def _print_objects(groups: Groups) -> None:
    for (benchmark, mode, method), runs in groups.items():
        names = {"benchmark": benchmark, "mode": mode, "method": method}
        counts = {"runs": len(runs), "done": runs.count(None), "seconds": _total(runs)}
        print(json.dumps({**names, **counts}))


def _print_lines(groups: Groups) -> None:
    from twofold.experiments.estimate import spoken

    widths = [max(map(len, column)) for column in zip(*groups, strict=True)]
    for group, runs in groups.items():
        named = "  ".join(f"{name:{width}}" for name, width in zip(group, widths, strict=True))
        done = runs.count(None)
        time = "" if done == len(runs) else f", {spoken(_total(runs))} of one core"
        noun = "run, " if len(runs) == 1 else "runs,"
        print(f"{named}  {len(runs):4} {noun} {done:4} done{time}")


def _seconds_left(configs: Sequence[Config], args: argparse.Namespace) -> list[float | None]:
    """Of each run, on one core; None for those that are in the store."""
    from twofold.experiments.estimate import Estimator
    from twofold.experiments.store import Store

    there = {folder.name.rsplit("-", 1)[-1] for folder in Store(args.out).folders()}
    estimator = Estimator(args.data)
    return [None if c.identity() in there else estimator.seconds(c) for c in configs]


def _total(runs: Sequence[float | None]) -> float:
    return sum(seconds for seconds in runs if seconds is not None)
