"""A run: one method on one benchmark with one seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import nn

from twofold.benchmarks import Recipe
from twofold.curves import ACCURACY
from twofold.discovery import import_file
from twofold.errors import UserError
from twofold.evaluation.measures import measures
from twofold.evaluation.trajectory import Gap, gaps
from twofold.experiments import notebook
from twofold.experiments.archive import CHECKSUMS, CURVES, Archive, is_archive
from twofold.experiments.columns import (
    Array,
    StoredColumns,
    checked,
    parquet_columns,
    read_parquet,
)
from twofold.experiments.config import (
    Config,
    headings,
    option_values,
)
from twofold.experiments.plain import LARGEST_JSON, parse, read_bytes, write_json
from twofold.experiments.reader import CONFIG, SUMMARY, check_name, run_of
from twofold.experiments.summary import METRICS, accuracy_table, lowest_table, order_of
from twofold.experiments.weights import (
    END,
    State,
    StoredWeights,
    of_task,
    write_all,
)
from twofold.extras import need
from twofold.models.flat import load_weights
from twofold.text import mean_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from twofold.drawing.curves import Task
    from twofold.experiments.plotting import View

DESCRIBING = (CONFIG, SUMMARY)
FIRST = ("benchmark", "mode", "method", "seed")  # the options that are always shown


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run: its configuration, a summary, and curves with a row per iteration."""

    config: Config
    summary: dict[str, Any]
    columns: Mapping[str, Array]  # the curves by name, each an array; read when first needed
    folder: Path | None = dataclasses.field(default=None, compare=False)  # where it was loaded from
    # The weights that the run kept, by name: `end`, or `task-1`, `task-2`, ...
    states: Mapping[str, State] = dataclasses.field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        config, metrics = self.config, [(name.upper(), self.summary.get(name)) for name in METRICS]
        numbers = ", ".join(f"{name} {value:.1f}" for name, value in metrics if value is not None)
        title = f"{config.method} on {config.benchmark}, {config.mode}, seed {config.seed}"
        return f"Run({title}{': ' if numbers else ''}{numbers})"

    def _repr_html_(self) -> str:
        row = (
            *option_values(self.config, FIRST).values(),
            mean_text([self.min]),
            mean_text([self.avg]),
        )
        return notebook.html_table(
            (*headings(FIRST), "MIN", "AVG"), [row], notebook.inline_picture(self)
        )

    @property
    def name(self) -> str:
        """The name of the run's folder in a store."""
        return self.folder.name if self.folder else self.config.folder_name()

    @property
    def min(self) -> float | None:
        """Average minimum accuracy, in percent; None with a single task."""
        value: float | None = self.summary["min"]
        return value

    @property
    def avg(self) -> float:
        """Final average accuracy, in percent."""
        return float(self.summary["avg"])

    def quantity(self, task: int) -> str:
        """Return what was measured on a task (from 1): the accuracy, or such as a reward."""
        quantities: list[str] = self.summary.get("quantities", [])
        return quantities[task - 1] if quantities else ACCURACY

    @property
    def plugins(self) -> list[str]:
        """Digests of the user's own components that the run was trained with."""
        return list(self.summary.get("plugins", []))

    @property
    def curves(self) -> pd.DataFrame:
        """The curves, a row per iteration, with a column `accuracy_K` for each task."""
        need("frames", "a DataFrame")
        import pandas as pd

        return pd.DataFrame(dict(self.columns))

    @cached_property
    def accuracy(self) -> NDArray[np.float32]:
        """Accuracies in percent: a row per iteration, a column per task, NaN if not evaluated."""
        return accuracy_table(self.columns)

    @cached_property
    def measures(self) -> dict[str, float | None]:
        """The measures of `twofold.evaluation.measures.MEASURES` by key."""
        return self._measures("accuracy")

    @cached_property
    def raw_measures(self) -> dict[str, float | None] | None:
        """The measures of the trained weights, if a routine has different weights evaluated."""
        if "raw_accuracy_after_task" not in self.summary:
            return None
        return self._measures("raw_accuracy")

    def _measures(self, kind: str) -> dict[str, float | None]:
        accuracy, ends = accuracy_table(self.columns, kind), self.summary[f"{kind}_after_task"]
        lowest, order = lowest_table(self.columns, kind), order_of(self.config, len(ends))
        return measures(self.columns["task"], accuracy, ends, lowest, order)

    @cached_property
    def gaps(self) -> list[Gap]:
        """Return the effect of every task switch on every task before it."""
        order = order_of(self.config, self.accuracy.shape[1])
        return gaps(self.columns["task"], self.accuracy, order=order)

    def forget(self) -> None:
        """Free the memory of the curves, if they come from a file. Measures are kept."""
        if isinstance(self.columns, StoredColumns):
            self.columns.forget()
            self.__dict__.pop("accuracy", None)

    def plot(self, task: Task = 1, **view: Unpack[View]) -> Figure:
        """Draw the accuracy on a task, or the mean over tasks; see `Runs.plot`."""
        from twofold.experiments.plotting import draw  # matplotlib, which workers do not need

        return draw({self.config.method: [self]}, task, **view)

    def weights(self, task: int | None = None) -> State:
        """Return the weights that the run kept, as a state dict on the CPU.

        task: the task, counted from 1, after which they were kept (default: the end of the run).
        """
        tasks = len(self.summary.get("accuracy_after_task", []))
        own_name = of_task(task or tasks)
        names = [END, own_name] if task in (None, tasks) else [own_name]
        for name in names:
            if name in self.states:
                return self.states[name]
        if not self.states:
            raise UserError(f'{self!r} kept no weights: train it with keep_weights="end"')
        kept = ", ".join(self.states)
        raise UserError(f"{self!r} kept no weights of task {task}: there are {kept}")

    def model(
        self,
        task: int | None = None,
        model: nn.Module | Callable[[], nn.Module] | None = None,
    ) -> nn.Module:
        """Return the trained network, ready to predict.

        task: the task, counted from 1, after which it is returned (default: the end of the run).
        model: the network of the run, or a function that returns it. Only runs on your own tensors
            need it.
        """
        state = self.weights(task)
        if isinstance(model, nn.Module):
            network = model
        else:
            with torch.random.fork_rng(devices=[]):  # nothing is drawn from the user's generator
                network = (model or self._network)()
        load_weights(network, state)
        return network.eval()

    def _network(self) -> nn.Module:
        if self.config.own:
            raise UserError(
                f"{self!r} was trained on your own tensors: pass its network, run.model(model=...)"
            )
        for plugin in self.config.plugins:
            import_file(plugin)
        return Recipe.find(self.config.benchmark).model()

    def write(self, folder: Path) -> None:
        """Write the run's files into a folder. `Store.save` does this safely."""
        write_json(folder / CONFIG, dataclasses.asdict(self.config))
        write_json(folder / SUMMARY, self.summary)
        file = (folder / CURVES).absolute()  # pyarrow takes `lr:0.1/...` for an address
        pq.write_table(pa.table(dict(self.columns)), file, compression="zstd")
        write_all(folder, self.states)

    @classmethod
    def load(cls, folder: Path | str) -> Run:
        """Load a run from its folder, or from an archive as `ARCHIVE/name-of-the-run`."""
        folder = Path(folder)
        try:
            return cls._read(folder)
        except UserError as error:
            raise type(error)(f"{folder} is not a run that can be read: {error}") from None

    @classmethod
    def _read(cls, folder: Path, contents: Mapping[str, bytes] | None = None) -> Run:
        if not folder.is_dir() and is_archive(folder.parent):
            entry = Archive(folder.parent).entry(folder.name)
            columns = StoredColumns(str(folder), entry.read)
            return cls(*run_of(entry.config, entry.summary), columns, folder)
        there = contents or {name: read_bytes(folder / name, LARGEST_JSON) for name in DESCRIBING}
        config, summary = run_of(*(parse(there[name], name) for name in DESCRIBING))
        file = folder / CURVES
        columns = StoredColumns(str(file), partial(_curves, file, summary))
        return cls(config, summary, columns, folder, StoredWeights(folder, CHECKSUMS))

    @classmethod
    def of_store(
        cls, folder: Path, curves: bool = False, contents: Mapping[str, bytes] | None = None
    ) -> Run:
        """Load a run of a store, whose name must be its own.

        curves: whether to read and check the curves now, and not when they are first needed.
        contents: of the run's files by name, if they were read before.
        """
        run = cls._read(folder, contents)
        check_name(folder.name, run.config, run.summary)
        if curves and contents and isinstance(run.columns, StoredColumns):
            run.columns.hold(_curves(folder / CURVES, run.summary, contents[CURVES]))
        elif curves:
            len(run.columns)
        return run


def _curves(
    file: Path, summary: Mapping[str, Any], content: bytes | None = None
) -> dict[str, Array]:
    columns = read_parquet(file) if content is None else parquet_columns(content, file)
    return checked(columns, summary, str(file))
