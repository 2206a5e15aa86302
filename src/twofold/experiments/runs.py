"""A run: one method on one benchmark with one seed, made, saved and loaded."""

from __future__ import annotations

import dataclasses
import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

from twofold.benchmarks import Benchmark, Recipe
from twofold.errors import UserError
from twofold.evaluation.metrics import average_accuracy, minimum_accuracies
from twofold.experiments.config import Config, configure
from twofold.training import Progress, Result, Training

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

    def save(self, out: Path) -> Path:
        """Write the run's folder below `out`, whole or not at all, in place of one of its name."""
        folder = out / self.config.folder_name()
        with complete_folder(folder) as temporary:
            _write_json(temporary / CONFIG, dataclasses.asdict(self.config))
            _write_json(temporary / SUMMARY, self.summary)
            pq.write_table(pa.table(self.curves), temporary / CURVES, compression="zstd")
        return folder

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


def load_runs(out: Path) -> list[Run]:
    """All runs below a folder, by name."""
    return [Run.load(path.parent) for path in sorted(Path(out).glob(f"*/{SUMMARY}"))]


def run(
    benchmark: str | Benchmark,
    method: str,
    *,
    data: Path | str | None = None,
    out: Path | str | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    **options: Any,
) -> Run:
    """Train `method` on `benchmark` and judge it as the options say; see `configure` for them.

    data: the folder that holds the dataset, if it is in none of the usual places.
    out: where to save the run; it is returned in any case.
    """
    config = configure(benchmark, method, **options)
    own = benchmark if isinstance(benchmark, Benchmark) else None
    finished = execute(config, Path(data) if data else None, report, own)
    if out is not None:
        finished.save(Path(out))
    return finished


def execute(
    config: Config,
    data: Path | None,
    report: Callable[[Progress], None],
    benchmark: Benchmark | None = None,
) -> Run:
    """Make the run that a configuration describes, on one thread."""
    with one_thread():
        if benchmark is None:
            recipe = Recipe.find(config.benchmark)
            benchmark = recipe.build(config.seed, data, config.whitening, config.device)
        objective, routines = config.make_components()
        result = Training(benchmark, objective, routines, config.settings(), report).run()
    return Run(config, summarise(config, result), result.curves)


@contextmanager
def one_thread() -> Iterator[None]:
    """Results must not depend on how many cores happen to be free, and sums over threads would."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def summarise(config: Config, result: Result) -> dict[str, Any]:
    """The numbers of a run. Accuracies are in percent; `min` is None with a single task."""
    curves, task = result.curves, result.curves["task"]
    minima = minimum_accuracies(task, accuracy_table(curves))
    later = np.asarray(task, int) > 1
    shown = ("benchmark", "mode", "method", "seed", "lr", "batch_size", "profile")
    return {
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
        "made_with": {
            "twofold": version("twofold"),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
    }


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder` that takes its place when all is written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    except OSError as error:
        raise UserError(f"can't write to {folder.parent}: {error.strerror}") from None
    try:
        yield temporary
        temporary.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_writable(out: Path) -> None:
    """Find out now, not after hours of training."""
    with complete_folder(out / ".probe") as temporary:
        (temporary / "probe").touch()
    shutil.rmtree(out / ".probe")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
