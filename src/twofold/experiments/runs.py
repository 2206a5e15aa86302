"""A run: one method on one benchmark with one seed, made, saved and loaded."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from twofold.errors import UserError
from twofold.evaluation.measures import Gap, gaps, measures
from twofold.evaluation.metrics import (
    average_accuracy,
    average_minimum_accuracy,
    minimum_accuracies,
)
from twofold.experiments.config import Config
from twofold.training import Result

CONFIG, SUMMARY, CURVES = "config.json", "summary.json", "curves.parquet"
SHOWN = ("benchmark", "mode", "method", "seed", "lr", "batch_size", "profile")  # what names a run

Column = NDArray[np.generic]


class MissingColumnError(UserError, KeyError):
    """Curves don't have it: a routine did not log it, or the run was exported without it."""

    __str__ = Exception.__str__  # a KeyError's is quoted


class StoredCurves(Mapping[str, Column]):
    """The columns of a file, read when the first is asked for: tables need none of them."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def _columns(self) -> dict[str, Column]:
        try:
            table = pq.read_table(self._file)
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{self._file} can't be read: {error}") from None
        return {name: table[name].to_numpy() for name in table.column_names}

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            there = ", ".join(self._columns)
            raise MissingColumnError(f"{self._file} has no column {name!r}: there are {there}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True)
class Run:
    """A finished run: its configuration, a summary, and curves with a row an iteration."""

    config: Config
    summary: dict[str, Any]
    columns: Mapping[str, Column]
    kept: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)

    @property
    def min(self) -> float | None:
        """Average minimum accuracy, in percent; None with a single task."""
        value: float | None = self.summary["min"]
        return value

    @property
    def avg(self) -> float:
        """Final average accuracy, in percent."""
        return float(self.summary["avg"])

    @property
    def plugins(self) -> list[str]:
        """Digests of the user's own components that the run was made with."""
        return list(self.summary.get("plugins", []))

    @cached_property
    def accuracy(self) -> NDArray[np.float32]:
        """Accuracies in percent: a row an iteration, a column a task, NaN where not evaluated."""
        return accuracy_table(self.columns)

    @cached_property
    def measures(self) -> dict[str, float | None]:
        """What `twofold.evaluation.measures.MEASURES` tells of, by key."""
        return self._measures("accuracy")

    @cached_property
    def raw_measures(self) -> dict[str, float | None] | None:
        """The same of the weights that are trained, where a routine has others judged."""
        there = "raw_accuracy_after_task" in self.summary
        return self._measures("raw_accuracy") if there else None

    def _measures(self, kind: str) -> dict[str, float | None]:
        accuracy, ends = accuracy_table(self.columns, kind), self.summary[f"{kind}_after_task"]
        return measures(self.columns["task"], accuracy, ends)

    @cached_property
    def gaps(self) -> list[Gap]:
        """What every task switch did to every task learned before it."""
        return gaps(self.columns["task"], self.accuracy)

    def write(self, folder: Path) -> None:
        """Write the run's files into a folder; `Store.save` does it safely."""
        _write_json(folder / CONFIG, dataclasses.asdict(self.config))
        _write_json(folder / SUMMARY, self.summary)
        pq.write_table(pa.table(dict(self.columns)), folder / CURVES, compression="zstd")

    @classmethod
    def load(cls, folder: Path | str) -> Run:
        folder = Path(folder)
        try:
            config = Config(**json.loads((folder / CONFIG).read_text()))
            summary = json.loads((folder / SUMMARY).read_text())
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{folder} is not a run that can be read: {error}") from None
        return cls(config, summary, StoredCurves(folder / CURVES))


def accuracy_table(curves: Mapping[str, Column], kind: str = "accuracy") -> NDArray[np.float32]:
    """kind: `accuracy`, or `raw_accuracy` of a run whose routine has other weights judged."""
    columns = [column for name, column in curves.items() if name.startswith(f"{kind}_")]
    return np.stack(columns, axis=1).astype(np.float32)


def summarise(config: Config, result: Result) -> dict[str, Any]:
    """The numbers of a run. Accuracies are in percent; `min` is None with a single task.

    Where a routine has other weights judged than those trained, `raw_` are these.
    """
    curves, task = result.curves, result.curves["task"]
    raw = _metrics(curves, "raw_accuracy", result.raw_task_ends) if result.raw_task_ends else {}
    later = np.asarray(task, int) > 1
    return {
        "identity": config.identity(),
        **{name: getattr(config, name) for name in SHOWN},
        **_metrics(curves, "accuracy", result.task_ends),
        **{f"raw_{name}": value for name, value in raw.items()},
        "diverged": not result.finite,
        "iterations": len(task),
        "projected": float(curves["projected"][later].astype(float).mean()) if later.any() else 0.0,
        "unsolved": int(curves["unsolved"].astype(float).sum()),
        "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
        **({"audit": result.audit} if result.audit else {}),
        "command": config.command(),
        **({"plugins": config.plugin_digests()} if config.plugins else {}),
        "made_with": made_with(config.device),
    }


def _metrics(curves: Mapping[str, Column], kind: str, ends: list[list[float]]) -> dict[str, Any]:
    task, accuracy = curves["task"], accuracy_table(curves, kind)
    return {
        "min": average_minimum_accuracy(task, accuracy),
        "avg": average_accuracy(ends[-1]),
        "minimum_of_task": minimum_accuracies(task, accuracy).tolist(),
        "accuracy_after_task": ends,
    }


def made_with(device: str) -> dict[str, Any]:
    """The versions and the hardware that a result comes from."""
    return {
        "twofold": version("twofold"),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
    }


def _processor() -> str:
    """Its name, which Python itself does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


class Runs(list[Run]):
    """stub until merged"""

    def __init__(self, runs: Any = (), failures: Any = None) -> None:
        super().__init__(runs)
        self.failures = failures or {}


def result_text(config: Config, summary: dict[str, Any]) -> str:
    """Return `MIN 83.1  AVG 93.6`, with a sign if MIN is a bound, and a word for divergence."""
    low = "-" if summary["min"] is None else f"{summary['min']:.1f}"
    sign = "" if config.schedule.complete or summary["min"] is None else "≤ "
    return f"MIN {sign}{low}  AVG {summary['avg']:.1f}" + (
        "  diverged" if summary["diverged"] else ""
    )
