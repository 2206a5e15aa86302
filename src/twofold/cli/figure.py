"""`twofold figure`: draw figures from finished runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.flags import add_own_settings, given_own_settings
from twofold.cli.output import Help, no_runs
from twofold.cli.parsing import Parser, folder, whole
from twofold.errors import UserError

if TYPE_CHECKING:
    from twofold.drawing.curves import Task


def add(commands: Any) -> None:
    figure: Parser = commands.add_parser(
        "figure",
        help="draw the stability gap from finished runs",
        description="Draw figures from finished runs, such as stability gaps: the accuracy on a "
        "task\nwhile later ones are learned.",
        add_help=False,
    )
    figure.set_defaults(act=act, parser=figure)
    add = figure.add_argument
    add("kind", metavar="FIGURE", help="what to draw, such as gap; see below")
    add("benchmark", metavar="BENCHMARK", help="such as rotated-mnist")
    add("-h", "--help", action=Help, listed=_listed)
    add(
        "--task",
        type=_task,
        metavar="N",
        help="whose accuracy: a number (1) or mean; diagnosis: which begins (2)",
    )
    add("--zoom", type=whole, metavar="N", help="iterations after a switch in the zooms (50)")
    label = "what to call a method; may be repeated"
    add("--label", action="append", metavar="METHOD=TEXT", help=label)
    one = "all objectives in one panel, not side by side"
    add("--together", action="store_true", default=None, help=one)
    add("--runs", type=folder, default=Path("runs"), metavar="DIR", help="folder with runs (runs)")
    add("--methods", nargs="+", metavar="METHOD", help="which (default: as listed below)")
    add("--mode", default="offline", help="offline (default) or online")
    add("--profile", default="paper", help="(default: paper)")
    chosen = "(default: where plain methods end highest)"
    add("--optimizer", metavar="NAME", help="only runs with this optimiser, such as adam")
    add("--lr", type=float, help=f"only runs with this learning rate {chosen}")
    add("--batch-size", type=whole, metavar="N", help="only runs with this batch size")
    add("--iterations", type=whole, metavar="N", help="only runs with N per task")
    add_own_settings(figure, "only runs with this setting of your own")
    output = "a .png, .svg or .pdf (default: BENCHMARK-MODE-FIGURE.png)"
    add("-o", "--output", type=Path, metavar="FILE", help=output)


def _listed() -> list[str]:
    try:
        from twofold.report.figures import KINDS
    except UserError as error:  # without matplotlib, the rest of the help is still of use
        return [str(error)]
    return ["figures:", *(f"  {name:22}{kind.about}" for name, kind in sorted(KINDS.items()))]


def _task(text: str) -> Task:
    if text == "mean":
        return "mean"
    try:
        return int(text)
    except ValueError:
        message = f"must be the number of a task, or mean, not {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def _labels(texts: Sequence[str] | None) -> dict[str, str] | None:
    """Return labels by method. The first = outside of brackets ends the method."""
    labels: dict[str, str] = {}
    for text in texts or []:
        parts = re.fullmatch(r"((?:[^=(]|\([^)]*\))+)=(.*)", text)
        method, label = (part.strip() for part in parts.groups()) if parts else ("", "")
        if not (method and label):
            raise UserError(f"--label takes a method and a text, such as er+gem=GEM, not {text!r}")
        if method in labels:
            raise UserError(f"--label names {method} twice")
        labels[method] = label
    return labels or None


def act(args: argparse.Namespace) -> None:
    from twofold.experiments.store import Store
    from twofold.report.figures import NARROWERS, check_format, find_kind, save_figure

    kind = find_kind(args.kind)
    output = args.output or Path(f"{args.benchmark}-{args.mode}-{kind.name}.png")
    check_format(output)
    options = {"task": args.task, "zoom": args.zoom, "together": args.together}
    options["labels"] = _labels(args.label)
    kind.check_options(**options)
    runs = Store(args.runs).runs(curves=True) if args.runs.is_dir() else []
    if not runs:
        command = kind.command((args.benchmark, args.mode, args.profile), runs)
        raise no_runs(args.runs, command)
    narrowers = {name: getattr(args, name) for name in NARROWERS} | given_own_settings(args)
    shown = kind.choose(runs, args.benchmark, args.mode, args.profile, args.methods, **narrowers)
    save_figure(kind.draw(shown.runs, among=runs, **options), output)
    methods = [run.config.method for run in shown.runs]
    counts = ", ".join(f"{method} ({methods.count(method)})" for method in dict.fromkeys(methods))
    print(f"The figure is in {output}; runs: {counts}")
    if shown.setting:
        print(f"The setting is {shown.setting}; --lr and --batch-size choose a different one")
    if shown.left_out:
        print(f"Left out: {', '.join(shown.left_out)}; --methods chooses")
