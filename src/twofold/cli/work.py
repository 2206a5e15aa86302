"""The flags and the training that `run` and `study run` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twofold.cli.flags import add_flags, given, groups_of
from twofold.cli.parsing import Parser
from twofold.experiments.options import Work
from twofold.options import options

if TYPE_CHECKING:
    from twofold.experiments.config import Config

KNOWN = options(Work)
MACHINES = """
what to choose (docs/performance.md gives the reasons):
  on a laptop     --eval-precision auto --eval-schedule dense:100:10   MIN is an upper bound
  on a server     --eval-precision auto --eval-schedule exact-min      MIN and AVG are exact
  on a GPU        --device cuda --per-gpu 4
  in a given time --within 30min --dry-run                             shows what fits
"""
STOPPED = (  # what Ctrl-C leaves behind
    "finished runs are kept, and the same command continues the others from their last checkpoints"
)


def add_work_flags(parser: Parser) -> None:
    add_flags(groups_of(parser), KNOWN.values())


def train(configs: Sequence[Config], args: argparse.Namespace) -> int:
    """Train the runs that are not complete, and print a table; return 1 if a run failed."""
    from twofold.compare.groups import groups
    from twofold.experiments.estimate import slow_precision
    from twofold.experiments.running import STORE, run_all
    from twofold.report.terminal import summary_tables, whole_console

    work = given(args, KNOWN.values())
    for line in slow_precision(configs, work.get("data")):
        print(line, file=sys.stderr)
    try:
        runs = run_all(configs, **work, progress=True)
    except KeyboardInterrupt as stop:
        stop.add_note(STOPPED)
        raise
    console = whole_console(stderr=bool(args.json))
    for table in summary_tables(groups(runs)):
        console.print(table)
    if runs:
        place = work.get("out", STORE)
        console.print(f"The runs are in {place}/", soft_wrap=True, markup=False)
    return 1 if runs.failures else 0
