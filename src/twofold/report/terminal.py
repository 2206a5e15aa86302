"""Tables for the terminal: the results of `twofold run`, and the runs of a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from twofold.compare.groups import Group
from twofold.component import plain
from twofold.experiments.config import Config, varying
from twofold.experiments.runs import Run
from twofold.text import mean_text, stated

METRICS = ("min", "avg")
MISSING = "-"  # a metric that does not exist, such as MIN with a single task
NAMES = ("benchmark", "mode", "method", "profile")
WIDEST = 10_000  # characters of a line in a pipe
SHOWN = (*NAMES, "scenario", "lr", "batch_size", "seed")  # columns, or in the title


def whole_console(stderr: bool = False) -> Console:
    """Return a console that cuts nothing in a pipe or a file, which have no width."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = WIDEST
    return console


def summary_tables(groups: Iterable[Group]) -> list[Table]:
    """Return a table per benchmark, mode and profile, with a row per group."""
    titled: dict[str, list[Group]] = {}
    for group in groups:
        config = group.config
        title = f"{config.benchmark}, {config.mode}, profile {config.profile}"
        title += f", scenario {config.scenario}" if config.scenario else ""
        title += ", on held-out training images" if config.validation else ""
        titled.setdefault(title, []).append(group)
    return [_table(title, rows) for title, rows in titled.items()]


def _table(title: str, groups: Sequence[Group]) -> Table:
    differing = varying([group.config for group in groups], SHOWN)
    table = Table(title=escape(title), box=box.SIMPLE_HEAVY, title_justify="left")
    table.add_column("method", overflow="fold")
    columns = [each.column for each in differing]
    for name in ("lr", "batch", *columns, "MIN", "AVG", "projected", "seeds"):
        table.add_column(escape(name), justify="right")
    for group in groups:
        config = group.config
        settings = [stated(config.lr), stated(config.batch_size)]
        settings += [_text(config, each.name) for each in differing]
        projected = 100 * float(np.mean(group.values("projected")))
        seeds = f"{len(group.runs)}" + (f" ({group.diverged} diverged)" if group.diverged else "")
        row = [config.method, *settings, *results(group), f"{projected:.1f}%", seeds]
        table.add_row(*map(escape, row))
    return table


def run_table(runs: Sequence[Run]) -> Table:
    """Return a table with a row per run."""
    differing = varying([run.config for run in runs], SHOWN)
    table = Table(box=box.SIMPLE_HEAVY)
    for column in ("run", *NAMES):
        table.add_column(column)
    columns = [each.column for each in differing]
    for column in ("lr", "batch", *columns, "seed", "MIN", "AVG"):
        table.add_column(escape(column), justify="right")
    for run in runs:
        config = run.config
        row = [run.summary["identity"], *(getattr(config, name) for name in NAMES)]
        row += [stated(config.lr), stated(config.batch_size)]
        row += [_text(config, each.name) for each in differing]
        row += [f"{config.seed}", *results(Group((run,)))]
        table.add_row(*map(escape, row))
    return table


def _text(config: Config, name: str) -> str:
    """Return the value of an option or of a user's own setting; nothing for a setting it lacks."""
    known = hasattr(config, name) or name in config.settings
    return plain(config.value(name)) if known else ""


def results(group: Group) -> list[str]:
    """Return MIN, an upper bound if evaluations were left out, and AVG."""
    low, average = (mean_text(group.values(metric), MISSING) for metric in METRICS)
    return [f"≤ {low}" if low != MISSING and not group.knows_min else low, average]
