"""What `run` and `study run` share: the options of the work, and the work itself."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.parsing import Parser, at_least_one, folder, real, seconds
from twofold.errors import UserError, missing

if TYPE_CHECKING:
    from twofold.experiments.config import Config
    from twofold.experiments.engine import Engine


def add_work_options(parser: Parser) -> None:
    add = parser.add_argument_group("where and how to work").add_argument
    add("--data", type=folder, metavar="DIR", help="folder with the dataset")
    add("--out", type=folder, default=Path("runs"), metavar="DIR", help="the run store (runs)")
    add("--workers", type=at_least_one, metavar="N", help="processes (default: one a core)")
    add("--per-gpu", type=at_least_one, metavar="N", help="so many runs at once on each GPU")
    add("--checkpoint-every", type=seconds, default=30.0, metavar="SECONDS", help="(default: 30)")
    add("--engine", choices=("local", "ray"), default="local", help="ray: on many machines")
    add("--address", metavar="ADDRESS", help="of a running Ray cluster (default: start one here)")
    add("--gpus-per-run", type=real, metavar="FRACTION", help="with Ray, such as 0.25")
    add("--tensorboard", type=folder, metavar="DIR", help="also write the curves there")
    add("--json", action="store_true", help="print one JSON object a finished run, on one line")


def make_all(configs: Sequence[Config], args: argparse.Namespace) -> int:
    """Make what is not complete, show how it goes, and the table; 1 if a run failed."""
    from rich.console import Console

    from twofold import datasets
    from twofold.benchmarks import Recipe
    from twofold.compare.groups import groups
    from twofold.experiments.runs import Run
    from twofold.experiments.store import Store
    from twofold.report.progress import Display
    from twofold.report.terminal import summary_tables

    store = Store(args.out)
    for name in dict.fromkeys(Recipe.find(config.benchmark).dataset for config in configs):
        if name is not None:
            datasets.load(name, args.data)  # once, before the workers do
    store.prepare()
    stderr = Console(stderr=True, highlight=False)
    with Display(configs, stderr, args.json, _also(args.tensorboard)) as display:
        _engine(args).run(configs, store, args.data, display)
    console = stderr if args.json else Console(highlight=False)
    made = {summary["identity"]: summary for summary in display.summaries}
    runs = [Run(c, made[c.identity()], {}) for c in configs if c.identity() in made]
    for table in summary_tables(groups(runs)):
        console.print(table)
    if runs:
        console.print(f"The runs are in {args.out}/", soft_wrap=True, markup=False)
    return 1 if display.failures else 0


def _also(tensorboard: Path | None) -> Callable[[Path], None]:
    """What else to do with a run that has finished."""
    if tensorboard is None:
        return lambda folder: None
    from twofold.experiments.runs import Run
    from twofold.report.tensorboard import check_installed, write_curves

    check_installed()
    return lambda folder: write_curves(Run.load(folder), tensorboard)


def _engine(args: argparse.Namespace) -> Engine:
    return _ray_engine(args) if args.engine == "ray" else _local_engine(args)


def _local_engine(args: argparse.Namespace) -> Engine:
    from twofold.experiments.local import LocalEngine

    if args.address is not None or args.gpus_per_run is not None:
        raise UserError("--address and --gpus-per-run belong to --engine ray")
    devices: list[str] = []
    if args.per_gpu is not None:
        import torch

        if not torch.cuda.is_available():
            raise UserError("--per-gpu needs a GPU, and there is none here")
        devices = [f"cuda:{k}" for k in range(torch.cuda.device_count())] * args.per_gpu
    workers: Any = args.workers or os.cpu_count() or 1
    return LocalEngine(workers, devices, args.checkpoint_every)


def _ray_engine(args: argparse.Namespace) -> Engine:
    if args.per_gpu is not None:
        raise UserError("--per-gpu belongs to --engine local: say --gpus-per-run, such as 0.25")
    if args.gpus_per_run is not None and not 0 < args.gpus_per_run <= 1:
        raise UserError(f"--gpus-per-run must be above 0 and at most 1, not {args.gpus_per_run}")
    try:
        from twofold.experiments.ray_engine import RayEngine
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise missing("the ray engine needs Ray", "ray") from None
    return RayEngine(args.address, args.workers, args.gpus_per_run or 0.0, args.checkpoint_every)
