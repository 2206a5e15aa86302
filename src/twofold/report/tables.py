"""Tables of MIN and AVG: mean and standard error over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from rich import box
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


def summary_table(summaries: Iterable[Mapping[str, Any]], title: str) -> Table:
    """A row a method, in the order of first appearance."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for summary in summaries:
        groups.setdefault(summary["method"], []).append(summary)
    table = Table(title=title, box=box.SIMPLE_HEAVY, title_justify="left")
    table.add_column("method")
    for column in ("MIN", "AVG", "projected", "seeds"):
        table.add_column(column, justify="right")
    for method, runs in groups.items():
        projected = 100 * float(np.mean([run["projected"] for run in runs]))
        diverged = sum(run["diverged"] for run in runs)
        seeds = f"{len(runs)}" + (f" ({diverged} diverged)" if diverged else "")
        cells = [cell([run[metric] for run in runs]) for metric in METRICS]
        table.add_row(method, *cells, f"{projected:.1f}%", seeds)
    return table
