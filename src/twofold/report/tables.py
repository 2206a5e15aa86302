"""Tables for the terminal: what `twofold run` made, and what is in a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from twofold.component import plain
from twofold.experiments.config import Config
from twofold.experiments.runs import Run
from twofold.report.cells import Cell, mean_and_error
from twofold.report.selection import LABELS
from twofold.report.text import value_text

METRICS = ("min", "avg")
NAMES = ("benchmark", "mode", "method", "profile")
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
    varying = _varying([cell.config for cell in cells])
    table = Table(title=escape(title), box=box.SIMPLE_HEAVY, title_justify="left")
    table.add_column("method", overflow="fold")
    for name in ("lr", "batch", *varying, "MIN", "AVG", "projected", "seeds"):
        table.add_column(name.replace("_", " "), justify="right")
    for cell in cells:
        config = cell.config
        settings = [f"{config.lr:g}", f"{config.batch_size}"]
        settings += [plain(getattr(config, name)) for name in varying]
        projected = 100 * float(np.mean(cell.values("projected")))
        seeds = f"{len(cell.runs)}" + (f" ({cell.diverged} diverged)" if cell.diverged else "")
        row = [config.method, *settings, *results(cell), f"{projected:.1f}%", seeds]
        table.add_row(*map(escape, row))
    return table


def run_table(runs: Sequence[Run]) -> Table:
    """A row a run."""
    varying = _varying([run.config for run in runs], ("seed", "plugins"))
    table = Table(box=box.SIMPLE_HEAVY)
    for column in ("run", *NAMES):
        table.add_column(column)
    for column in ("lr", "batch", *varying, "seed", "MIN", "AVG"):
        table.add_column(column.replace("_", " "), justify="right")
    for run in runs:
        config = run.config
        row = [run.summary["identity"], *(getattr(config, name) for name in NAMES)]
        row += [f"{config.lr:g}", f"{config.batch_size}"]
        row += [plain(getattr(config, name)) for name in varying]
        row += [f"{config.seed}", *results(Cell((run,)))]
        table.add_row(*map(escape, row))
    return table


def _varying(configs: Sequence[Config], columns: Sequence[str] = ()) -> list[str]:
    """What else tells the rows apart, where `columns` do not."""
    names = [field.name for field in dataclasses.fields(Config)]
    others = [name for name in names if name not in (*SHOWN, *columns)]
    return [name for name in others if len({str(getattr(c, name)) for c in configs}) > 1]


def results(cell: Cell) -> list[str]:
    """MIN, an upper bound where evaluations were left out, and AVG."""
    texts = [cell_text(cell.values(metric)) for metric in METRICS]
    return [f"≤ {texts[0]}" if texts[0] != "-" and not cell.complete else texts[0], texts[1]]


def cell_text(values: Sequence[float]) -> str:
    """`93.6 ± 0.1`; `-` where a metric does not exist, as MIN with a single task."""
    return value_text(*mean_and_error(values)) if values else "-"
