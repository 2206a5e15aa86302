"""The summary of a run: its numbers, and the versions and hardware that they come from."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from twofold.benchmarks import Benchmark, Recipe
from twofold.discovery import sources_digest
from twofold.evaluation.metrics import (
    average_accuracy,
    average_minimum_accuracy,
    minimum_accuracies,
)
from twofold.experiments.columns import Array
from twofold.experiments.config import Config
from twofold.options import options
from twofold.results import Result

METRICS = ("min", "avg")
NAMING = [name for name, each in options(Config).items() if each.axis or each.role == "name"]


def result_text(config: Config, summary: Mapping[str, Any]) -> str:
    """Return `MIN 83.1  AVG 93.6`; it also shows if MIN is a bound and if the run diverged."""
    low, average = (summary[metric] for metric in METRICS)
    sign = "" if low is None or config.schedule.knows_min else "≤ "
    diverged = "  diverged" if summary["diverged"] else ""
    return f"MIN {sign}{'-' if low is None else f'{low:.1f}'}  AVG {average:.1f}{diverged}"


def accuracy_table(curves: Mapping[str, Array], kind: str = "accuracy") -> NDArray[np.float32]:
    """Return the accuracies of a run: a row per iteration, a column per task.

    kind: `accuracy`, or `raw_accuracy` for the trained weights if different ones are evaluated.
    """
    columns = [column for name, column in curves.items() if name.startswith(f"{kind}_")]
    return np.stack(columns, axis=1).astype(np.float32)


def lowest_table(curves: Mapping[str, Array], kind: str = "accuracy") -> NDArray[np.float32]:
    """Return a table whose minima are those of the run: of the lowest accuracies, if recorded."""
    lowest = kind.replace("accuracy", "lowest")
    return accuracy_table(curves, lowest if f"{lowest}_1" in curves else kind)


def summarise(config: Config, result: Result) -> dict[str, Any]:
    """Return the numbers of a run. Accuracies are in percent; `min` is None with a single task.

    If a routine has different weights evaluated, `raw_` marks the numbers of the trained weights.
    """
    curves, task = result.curves, result.curves["task"]
    order, raw_ends = order_of(config, len(result.task_ends)), result.raw_task_ends
    raw = _metrics(curves, "raw_accuracy", raw_ends, order) if raw_ends else {}
    later = np.asarray(task, int) > 1
    return {
        "identity": config.identity(),
        **{name: getattr(config, name) for name in NAMING},
        **_metrics(curves, "accuracy", result.task_ends, order),
        **{f"raw_{name}": value for name, value in raw.items()},
        "diverged": not result.finite,
        "iterations": len(task),
        "projected": float(curves["projected"][later].astype(float).mean()) if later.any() else 0.0,
        "unsolved": int(curves["unsolved"].astype(float).sum()),
        "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
        **({"audit": result.audit} if result.audit else {}),
        **({"precision": result.precision} if result.precision else {}),
        "command": config.command(),
        **({"plugins": config.brought()} if config.brought() else {}),
        "made_with": made_with(config.device),
    }


def order_of(config: Config, tasks: int) -> list[int] | None:
    """Return what a run of this many tasks learned at each place; None if no task returns."""
    order = config.sequence(tasks)
    return order if len(set(order)) < len(order) == tasks else None


def _metrics(
    curves: Mapping[str, Array], kind: str, ends: list[list[float]], order: list[int] | None
) -> dict[str, Any]:
    task, lowest = curves["task"], lowest_table(curves, kind)
    return {
        "min": average_minimum_accuracy(task, lowest, order),
        "avg": average_accuracy(ends[-1], order),
        "minimum_of_task": minimum_accuracies(task, lowest).tolist(),
        "accuracy_after_task": ends,
    }


def own_sizes(config: Config, benchmark: Benchmark) -> dict[str, Any]:
    """Return the number of examples per task, unless they are as many as were published."""
    published = None if config.own else Recipe.find(config.benchmark).published_sizes
    if published is None:
        return {}
    train, test, *_ = benchmark.sizes()
    if (train, test) == published[:2]:
        return {}
    return {"examples": {"train": train, "test": test}}


def made_with(device: str) -> dict[str, Any]:
    """Return the versions and the hardware that a result comes from."""
    return {
        "twofold": version("twofold"),
        "sources": sources_digest(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **hardware(device),
    }


def hardware(device: str) -> dict[str, Any]:
    """Return the hardware, by which the speed of two runs can be compared."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
    }


def _processor() -> str:
    """Return the name of the processor, which Python does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
