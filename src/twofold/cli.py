"""The command line. Heavy imports wait until a command needs them: `--help` answers at once."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from twofold.errors import UserError

RUN_EXAMPLES = """examples:
  twofold run rotated-mnist er                       one run, as in the paper's main table
  twofold run rotated-mnist er er+gem --seeds 5      two methods, five seeds, one worker a core
  twofold run split-cifar100 bic+agem --mode online --profile published
  twofold run rotated-mnist 'er+gem(gamma=0.1,when=always)' --json
"""


class Parser(argparse.ArgumentParser):
    """Errors in one line, with the closest spelling; no abbreviated options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["formatter_class"] = argparse.RawDescriptionHelpFormatter
        kwargs["allow_abbrev"] = False
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            known = [name.strip(" '") for name in choice[2].split(",")]
            message += _did_you_mean(choice[1], known)
        raise UserError(message)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, extra = self.parse_known_args(args, namespace)
        if extra:
            used: Parser = getattr(parsed, "parser", self)
            known = [option for action in used._actions for option in action.option_strings]
            self.error(f"unknown argument {extra[0]!r}{_did_you_mean(extra[0], known)}")
        return parsed


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f": did you mean {close[0]!r}?" if close else ""


def _number(kind: type[int] | type[float], what: str) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}") from None

    return convert


_whole, _real = _number(int, "a whole number"), _number(float, "a number")


def _seed_list(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(word) for word in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas between them, not {text!r}"
        ) from None


def _parser() -> Parser:
    parser = Parser(
        prog="twofold",
        description="Continual learning as what x how: any objective with any optimisation "
        "routine, judged after every iteration.",
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    _add_run(commands)
    _add_figure(commands)
    listing = commands.add_parser("list", help="benchmarks, objectives, routines, their options")
    listing.add_argument("--plugin", action="append", default=[], metavar="FILE.py")
    listing.set_defaults(act=_list, parser=listing)
    data = commands.add_parser("data", help="get or check a dataset")
    data.add_argument("action", choices=("get", "check"), metavar="get|check")
    data.add_argument("name", help="mnist, cifar100 or mini-imagenet")
    data.add_argument("--data", type=Path, metavar="DIR", help="where it is, or shall be")
    data.set_defaults(act=_data, parser=data)
    return parser


def _add_run(commands: Any) -> None:
    run: Parser = commands.add_parser(
        "run",
        help="train methods on a benchmark, judging them after every iteration",
        description="Train methods on a benchmark, judging them after every iteration. "
        "`twofold list` names what there is.",
        epilog=RUN_EXAMPLES,
    )
    run.set_defaults(act=_run, parser=run)
    run.add_argument("benchmark", metavar="BENCHMARK", help="such as rotated-mnist")
    run.add_argument("methods", metavar="METHOD", nargs="+", help="such as er+gem(gamma=0.5)")
    add = run.add_argument_group("what to train").add_argument
    add("--mode", default="offline", help="offline (many passes; default) or online (one pass)")
    add("--lr", type=_real, help="learning rate (default: 0.1 offline, 0.01 online)")
    add("--batch-size", type=_whole, help="(default: 128 offline; 10 online, Mini-ImageNet 64)")
    seeds = run.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=_seed_list, metavar="N,N,...", help="these seeds (142)")
    seeds.add_argument("--seeds", type=_whole, metavar="N", help="the first N of 142, 152, ...")
    add("--profile", default="paper", help="paper (the text; default) or published (the code)")
    add("--iterations", type=_whole, metavar="N", help="at most N a task")
    add("--tasks", type=_whole, metavar="N", help="only the first N tasks")
    add("--memory-per-class", type=_whole, default=100, metavar="N", help="examples kept (100)")
    add("--memory-grouping", help="class-task (the paper) or class (D1); default: the profile's")
    add("--whitening", help="train (the paper) or published (D6); default: the profile's")
    add("--momentum", type=_real, default=0.9, help="(default: 0.9)")
    add("--reset-momentum", action="store_true", help="set it to zero at every task switch")
    add("--device", default="cpu", help="cpu (default), cuda, ...")
    add("--plugin", action="append", default=[], metavar="FILE.py", help="your own components")
    add = run.add_argument_group("how to judge it").add_argument
    add("--eval-every", type=_whole, default=1, metavar="N", help="iterations (default: 1)")
    add("--eval-size", type=_whole, default=1000, metavar="N", help="test images a task (1000)")
    add = run.add_argument_group("where and how to work").add_argument
    add("--data", type=Path, metavar="DIR", help="folder with the dataset")
    add("--out", type=Path, default=Path("runs"), metavar="DIR", help="folder for runs (runs)")
    add("--workers", type=_whole, metavar="N", help="processes (default: one a core)")
    add("--json", action="store_true", help="print one JSON object a finished run, on one line")


def _add_figure(commands: Any) -> None:
    figure: Parser = commands.add_parser(
        "figure",
        help="draw the stability gap from finished runs",
        description="Draw the stability gap from finished runs: the accuracy on a task while later "
        "ones are learned, a column an objective, a colour a routine.",
    )
    figure.set_defaults(act=_figure, parser=figure)
    add = figure.add_argument
    add("kind", choices=("gap",), metavar="gap", help="what to draw")
    add("benchmark", metavar="BENCHMARK", help="such as rotated-mnist")
    add("--task", type=_whole, default=1, metavar="N", help="whose accuracy (default: 1)")
    add("--runs", type=Path, default=Path("runs"), metavar="DIR", help="folder with runs (runs)")
    add("--methods", nargs="+", metavar="METHOD", help="only these (default: all there are)")
    add("--mode", default="offline", help="offline (default) or online")
    add("--profile", default="paper", help="paper (default) or published")
    add("--lr", type=_real, help="only runs with this learning rate")
    add("--batch-size", type=_whole, metavar="N", help="only runs with this batch size")
    add("--iterations", type=_whole, metavar="N", help="only runs with so many a task")
    output = "a .png, .svg or .pdf (default: BENCHMARK-MODE-gap.png)"
    add("-o", "--output", type=Path, metavar="FILE", help=output)


def _run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from twofold import datasets
    from twofold.benchmarks import Recipe
    from twofold.experiments.config import configure, paper_seeds
    from twofold.experiments.runs import check_writable
    from twofold.experiments.workers import run_all
    from twofold.report.progress import ProgressDisplay
    from twofold.report.tables import summary_table

    if args.seeds is not None and args.seeds < 1:
        raise UserError(f"--seeds must be at least 1, not {args.seeds}")
    if args.workers is not None and args.workers < 1:
        raise UserError(f"--workers must be at least 1, not {args.workers}")
    seeds = args.seed or paper_seeds(args.seeds or 1)
    passed = (
        "mode lr batch_size profile iterations tasks memory_per_class memory_grouping whitening "
        "momentum reset_momentum device eval_every eval_size"
    )
    options = {name: getattr(args, name) for name in passed.split()}
    configs = [
        configure(args.benchmark, method, seed=seed, plugins=args.plugin, **options)
        for method in args.methods
        for seed in seeds
    ]
    check_writable(args.out)
    datasets.load(Recipe.find(args.benchmark).dataset, args.data)  # once, before the workers do

    summaries: list[dict[str, Any]] = []
    stderr = Console(stderr=True, highlight=False)

    class Display(ProgressDisplay):
        def finished(self, index: int, summary: dict[str, Any], folder: Path) -> None:
            super().finished(index, summary, folder)
            summaries.append(summary)
            if args.json:
                print(json.dumps({**summary, "folder": str(folder)}), flush=True)

    with Display(configs, stderr) as display:
        workers = args.workers or os.cpu_count() or 1
        run_all(configs, data=args.data, out=args.out, workers=workers, watcher=display)
    order = {config.method: place for place, config in enumerate(configs)}
    summaries.sort(key=lambda summary: order[summary["method"]])
    title = f"{configs[0].benchmark}, {args.mode}, profile {args.profile}"
    console = stderr if args.json else Console(highlight=False)
    console.print(summary_table(summaries, title))
    console.print(f"The runs are in {args.out}/", soft_wrap=True)


def _figure(args: argparse.Namespace) -> None:
    from twofold.experiments.runs import load_runs
    from twofold.report.figures import NARROWERS, check_format, gap_figure, save_figure, select_runs

    output = args.output or Path(f"{args.benchmark}-{args.mode}-gap.png")
    check_format(output)
    runs = load_runs(args.runs)
    if not runs:
        raise UserError(f"there are no runs in {args.runs}: make some with `twofold run`")
    narrowers = {name: getattr(args, name) for name in NARROWERS}
    shown = select_runs(runs, args.benchmark, args.mode, args.profile, args.methods, **narrowers)
    save_figure(gap_figure(shown, args.task), output)
    methods = sorted(run.config.method for run in shown)
    counts = ", ".join(f"{method} ({methods.count(method)})" for method in dict.fromkeys(methods))
    print(f"The figure is in {output}; runs: {counts}")


def _list(args: argparse.Namespace) -> None:
    from twofold.discovery import import_file
    from twofold.report.listing import listing

    for plugin in args.plugin:
        import_file(plugin)
    print(listing())


def _data(args: argparse.Namespace) -> None:
    from twofold import datasets

    if args.action == "get":
        print(f"{args.name} is in {datasets.get(args.name, args.data)}")
    else:
        print(datasets.check(args.name, args.data))


def main(argv: Sequence[str] | None = None) -> int:
    """0 if all went well, 2 if the user can mend it, 130 after Ctrl-C, 1 otherwise."""
    try:
        args = _parser().parse_args(argv)
        args.act(args)
    except UserError as error:
        print(f"twofold: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("twofold: stopped; finished runs are kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
