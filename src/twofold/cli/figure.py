"""`twofold figure`: draw the stability gap from finished runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from twofold.cli.parsing import Parser, folder, real, whole
from twofold.errors import UserError


def add(commands: Any) -> None:
    figure: Parser = commands.add_parser(
        "figure",
        help="draw the stability gap from finished runs",
        description="Draw the stability gap from finished runs: the accuracy on a task while later "
        "ones are learned, a column an objective, a colour a routine.",
    )
    figure.set_defaults(act=act, parser=figure)
    add = figure.add_argument
    add("kind", choices=("gap",), metavar="gap", help="what to draw")
    add("benchmark", metavar="BENCHMARK", help="such as rotated-mnist")
    add("--task", type=whole, default=1, metavar="N", help="whose accuracy (default: 1)")
    add("--runs", type=folder, default=Path("runs"), metavar="DIR", help="folder with runs (runs)")
    add("--methods", nargs="+", metavar="METHOD", help="only these (default: all there are)")
    add("--mode", default="offline", help="offline (default) or online")
    add("--profile", default="paper", help="paper (default) or published")
    add("--lr", type=real, help="only runs with this learning rate")
    add("--batch-size", type=whole, metavar="N", help="only runs with this batch size")
    add("--iterations", type=whole, metavar="N", help="only runs with so many a task")
    output = "a .png, .svg or .pdf (default: BENCHMARK-MODE-gap.png)"
    add("-o", "--output", type=Path, metavar="FILE", help=output)


def act(args: argparse.Namespace) -> None:
    from twofold.experiments.store import Store
    from twofold.report.figures import NARROWERS, check_format, gap_figure, save_figure, select_runs

    output = args.output or Path(f"{args.benchmark}-{args.mode}-gap.png")
    check_format(output)
    runs = Store(args.runs).runs()
    if not runs:
        raise UserError(f"there are no runs in {args.runs}: make some with `twofold run`")
    narrowers = {name: getattr(args, name) for name in NARROWERS}
    shown = select_runs(runs, args.benchmark, args.mode, args.profile, args.methods, **narrowers)
    save_figure(gap_figure(shown, args.task), output)
    methods = sorted(run.config.method for run in shown)
    counts = ", ".join(f"{method} ({methods.count(method)})" for method in dict.fromkeys(methods))
    print(f"The figure is in {output}; runs: {counts}")
