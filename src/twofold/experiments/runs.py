"""A run: one method on one benchmark with one seed, made, saved and loaded."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from dataclasses import dataclass
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
from twofold.evaluation.metrics import average_accuracy, minimum_accuracies
from twofold.experiments.config import Config
from twofold.training import Result

CONFIG, SUMMARY, CURVES = "config.json", "summary.json", "curves.parquet"


@dataclass(frozen=True)
class Run:
    """A finished run: its configuration, a summary, and curves with a row an iteration."""

    config: Config
    summary: dict[str, Any]
    curves: dict[str, NDArray[np.generic]]

    @property
    def min(self) -> float | None:
        """Average minimum accuracy, in percent; None with a single task."""
        value: float | None = self.summary["min"]
        return value

    @property
    def avg(self) -> float:
        """Final average accuracy, in percent."""
        return float(self.summary["avg"])

    @cached_property
    def accuracy(self) -> NDArray[np.float32]:
        """Accuracies in percent: a row an iteration, a column a task, NaN where not evaluated."""
        return accuracy_table(self.curves)

    def write(self, folder: Path) -> None:
        """Write the run's files into a folder; `Store.save` does it safely."""
        _write_json(folder / CONFIG, dataclasses.asdict(self.config))
        _write_json(folder / SUMMARY, self.summary)
        pq.write_table(pa.table(self.curves), folder / CURVES, compression="zstd")

    @classmethod
    def load(cls, folder: Path | str) -> Run:
        folder = Path(folder)
        try:
            config = Config(**json.loads((folder / CONFIG).read_text()))
            summary = json.loads((folder / SUMMARY).read_text())
            table = pq.read_table(folder / CURVES)
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            raise UserError(f"{folder} is not a run that can be read: {error}") from None
        curves = {name: table[name].to_numpy() for name in table.column_names}
        return cls(config, summary, curves)


def accuracy_table(curves: dict[str, NDArray[np.generic]]) -> NDArray[np.float32]:
    columns = [column for name, column in curves.items() if name.startswith("accuracy_")]
    return np.stack(columns, axis=1).astype(np.float32)


def summarise(config: Config, result: Result) -> dict[str, Any]:
    """The numbers of a run. Accuracies are in percent; `min` is None with a single task."""
    curves, task = result.curves, result.curves["task"]
    minima = minimum_accuracies(task, accuracy_table(curves))
    later = np.asarray(task, int) > 1
    shown = ("benchmark", "mode", "method", "seed", "lr", "batch_size", "profile")
    return {
        "identity": config.identity(),
        **{name: getattr(config, name) for name in shown},
        "min": float(minima.mean()) if len(minima) else None,
        "avg": average_accuracy(result.task_ends[-1]),
        "minimum_of_task": minima.tolist(),
        "accuracy_after_task": result.task_ends,
        "diverged": not result.finite,
        "iterations": len(task),
        "projected": float(curves["projected"][later].astype(float).mean()) if later.any() else 0.0,
        "unsolved": int(curves["unsolved"].astype(float).sum()),
        "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
        "command": config.command(),
        "made_with": made_with(config.device),
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
