"""Tables for the terminal: what `twofold run` made, and what is in a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from twofold.experiments.config import Config
from twofold.report.cells import Cell, mean_and_error
from twofold.report.selection import LABELS
from twofold.report.text import value_text

METRICS = ("min", "avg")
SHOWN = ("benchmark", "mode", "lr", "batch_size", "components", *LABELS)  # columns, or in the title


def summary_tables(cells: Iterable[Cell]) -> list[Table]:
    """A table a benchmark, mode and profile; a row a cell."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        config = cell.config
        title = f"{config.benchmark}, {config.mode}, profile {config.profile}"
        groups.setdefault(title, []).append(cell)
    return [_table(title, own) for title, own in groups.items()]


def _table(title: str, cells: Sequence[Cell]) -> Table:
    varying = _varying(cells)
    table = Table(title=escape(title), box=box.SIMPLE_HEAVY, title_justify="left")
    table.add_column("method", overflow="fold")
    for name in ("lr", "batch", *varying, "MIN", "AVG", "projected", "seeds"):
        table.add_column(name.replace("_", " "), justify="right")
    for cell in cells:
        config = cell.config
        settings = [f"{config.lr:g}", f"{config.batch_size}"]
        settings += [str(getattr(config, name)) for name in varying]
        projected = 100 * float(np.mean(cell.values("projected")))
        seeds = f"{len(cell.runs)}" + (f" ({cell.diverged} diverged)" if cell.diverged else "")
        row = [config.method, *settings, *_results(cell), f"{projected:.1f}%", seeds]
        table.add_row(*map(escape, row))
    return table


def _varying(cells: Sequence[Cell]) -> list[str]:
    """What else tells the rows apart."""
    names = [field.name for field in dataclasses.fields(Config) if field.name not in SHOWN]
    return [name for name in names if len({str(getattr(c.config, name)) for c in cells}) > 1]


def _results(cell: Cell) -> list[str]:
    """MIN, an upper bound where evaluations were left out, and AVG."""
    texts = [cell_text(cell.values(metric)) for metric in METRICS]
    return [f"≤ {texts[0]}" if texts[0] != "-" and not cell.complete else texts[0], texts[1]]


def cell_text(values: Sequence[float]) -> str:
    """`93.6 ± 0.1`; `-` where a metric does not exist, as MIN with a single task."""
    return value_text(*mean_and_error(values)) if values else "-"


def run_table(summaries: Iterable[Mapping[str, Any]]) -> Table:
    """A row a run."""
    table = Table(box=box.SIMPLE_HEAVY)
    for column in ("run", "benchmark", "mode", "method", "profile"):
        table.add_column(column)
    for column in ("lr", "batch", "seed", "MIN", "AVG"):
        table.add_column(column, justify="right")
    for run in summaries:
        results = [cell_text([run[m]] if run[m] is not None else []) for m in METRICS]
        names = (run["identity"], run["benchmark"], run["mode"], run["method"], run["profile"])
        numbers = (f"{run['lr']:g}", f"{run['batch_size']}", f"{run['seed']}")
        table.add_row(*map(escape, names), *numbers, *results)
    return table
