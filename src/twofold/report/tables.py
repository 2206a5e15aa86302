"""Tables of MIN and AVG: mean and standard error over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

METRICS = ("min", "avg")


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    """The mean, and the standard error of the mean: sd with n-1, over the root of n."""
    array = np.array(list(values), float)
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else None
    return float(array.mean()), error


def cell(values: list[float | None]) -> str:
    """`93.6 ± 0.1`; without an error for a single run, `-` where a metric does not exist."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "-"
    mean, error = mean_and_error(numbers)
    return f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"


def summary_tables(summaries: Iterable[Mapping[str, Any]]) -> list[Table]:
    """A table a benchmark, mode and profile; a row a method, learning rate and batch size."""
    groups: dict[tuple[str, ...], dict[tuple[Any, ...], list[Mapping[str, Any]]]] = {}
    for summary in summaries:
        table = groups.setdefault(
            tuple(summary[name] for name in ("benchmark", "mode", "profile")), {}
        )
        row = tuple(summary[name] for name in ("method", "lr", "batch_size"))
        table.setdefault(row, []).append(summary)
    return [
        _table(", ".join(group[:2]) + f", profile {group[2]}", rows)
        for group, rows in groups.items()
    ]


def _table(title: str, rows: Mapping[tuple[Any, ...], list[Mapping[str, Any]]]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAVY, title_justify="left")
    table.add_column("method", overflow="fold")
    for column in ("lr", "batch", "MIN", "AVG", "projected", "seeds"):
        table.add_column(column, justify="right")
    for (method, lr, batch_size), runs in rows.items():
        projected = 100 * float(np.mean([run["projected"] for run in runs]))
        diverged = sum(run["diverged"] for run in runs)
        seeds = f"{len(runs)}" + (f" ({diverged} diverged)" if diverged else "")
        cells = [cell([run[metric] for run in runs]) for metric in METRICS]
        table.add_row(
            escape(method), f"{lr:g}", f"{batch_size}", *cells, f"{projected:.1f}%", seeds
        )
    return table


def run_table(summaries: Iterable[Mapping[str, Any]]) -> Table:
    """A row a run."""
    table = Table(box=box.SIMPLE_HEAVY)
    for column in ("run", "benchmark", "mode", "method", "profile"):
        table.add_column(column)
    for column in ("lr", "batch", "seed", "MIN", "AVG"):
        table.add_column(column, justify="right")
    for run in summaries:
        cells = [cell([run[metric]]) for metric in METRICS]
        names = (run["identity"], run["benchmark"], run["mode"], run["method"], run["profile"])
        numbers = (f"{run['lr']:g}", f"{run['batch_size']}", f"{run['seed']}")
        table.add_row(*map(escape, names), *numbers, *cells)
    return table
