"""Runs, each of one method on one benchmark with one seed, and collections of runs."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import nn

from twofold.benchmarks import Recipe
from twofold.curves import ACCURACY
from twofold.discovery import import_file
from twofold.errors import UserError, unknown
from twofold.evaluation.measures import measures
from twofold.evaluation.trajectory import Gap, gaps
from twofold.experiments import notebook
from twofold.experiments.archive import CHECKSUMS, CURVES, Archive, is_archive
from twofold.experiments.columns import Array, StoredColumns, checked, read_parquet
from twofold.experiments.config import (
    Config,
    headings,
    option_names,
    option_values,
    own_settings,
    setting_words,
    varying,
)
from twofold.experiments.naming import canonical
from twofold.experiments.plain import read_json
from twofold.experiments.reader import (
    CONFIG,
    SUMMARY,
    check_name,
    config_of,
    is_older,
    summary_of,
)
from twofold.experiments.summary import METRICS, accuracy_table, lowest_table
from twofold.experiments.weights import (
    END,
    State,
    StoredWeights,
    of_task,
    write_all,
)
from twofold.models.flat import load_weights
from twofold.text import mean_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAMED = 4  # methods that `repr(runs)` lists


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
        """The curves: a row per iteration, with a column `accuracy_K` for each task."""
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
        lowest = lowest_table(self.columns, kind)
        return measures(self.columns["task"], accuracy, ends, lowest)

    @cached_property
    def gaps(self) -> list[Gap]:
        """Return the effect of every task switch on every task before it."""
        return gaps(self.columns["task"], self.accuracy)

    def plot(self, task: int = 1) -> Figure:
        """Draw the accuracy on a task (the first by default) while later ones are learned."""
        from twofold.experiments.plotting import draw  # matplotlib, which workers do not need

        return draw({self.config.method: [self]}, task)

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
        _write_json(folder / CONFIG, dataclasses.asdict(self.config))
        _write_json(folder / SUMMARY, self.summary)
        pq.write_table(pa.table(dict(self.columns)), folder / CURVES, compression="zstd")
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
    def _read(cls, folder: Path) -> Run:
        if not folder.is_dir() and is_archive(folder.parent):
            archive = Archive(folder.parent)
            entry = archive.entry(folder.name)
            config = config_of(entry.config)
            summary = summary_of(entry.summary, config, is_older(entry.config))
            return cls(config, summary, archive.columns(folder.name), folder)
        plain = read_json(folder / CONFIG)
        config = config_of(plain)
        summary = summary_of(read_json(folder / SUMMARY), config, is_older(plain))
        file = folder / CURVES
        columns = StoredColumns(str(file), partial(_curves, file, summary))
        return cls(config, summary, columns, folder, StoredWeights(folder, CHECKSUMS))

    @classmethod
    def of_store(cls, folder: Path, curves: bool = False) -> Run:
        """Load a run of a store, whose name must be its own.

        curves: whether to check the curves now, and not when they are first needed.
        """
        run = cls._read(folder)
        check_name(folder.name, run.config, run.summary)
        if curves:
            len(copy.copy(run.columns))  # a copy is forgotten: those of a large study are large
        return run


FIRST = ("benchmark", "mode", "method", "seed")  # the options that are always shown


class Runs(Sequence[Run]):
    """Several runs, in order. A slice or a selection of them is a `Runs` as well."""

    def __init__(self, runs: Iterable[Run] = (), failures: Mapping[str, str] = {}) -> None:
        self._runs = tuple(runs)
        self.failures = dict(failures)  # the reasons of failed runs, by name

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __add__(self, other: Iterable[Run]) -> Runs:
        return Runs((*self, *other))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runs | list | tuple) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a run's summary has none either

    def where(self, test: Callable[[Run], bool] | None = None, /, **options: Any) -> Runs:
        """Select runs by their options, such as `runs.where(method="er", seed=142)`.

        test: a function that returns whether to select a run, such as `lambda run: run.avg > 90`.
        """
        known = [*option_names(), *own_settings(run.config for run in self)]
        for name in options:
            if name not in known:
                raise unknown("option", name, known)
        chosen = self._runs if test is None else filter(test, self._runs)
        return Runs(run for run in chosen if matches(run.config, options))

    @property
    def curves(self) -> pd.DataFrame:
        """Return the curves: a row per run and iteration, with options of the run first.

        These are benchmark, mode, method and seed, and all options in which the runs differ.
        """
        return self._with_curves(self._differing())

    @property
    def measures(self) -> pd.DataFrame:
        """Return the measures: a row per run, with the options in which runs differ first."""
        import pandas as pd

        names = self._differing()
        return pd.DataFrame([{**option_values(run.config, names), **run.measures} for run in self])

    def frame(self) -> pd.DataFrame:
        """Return the curves of all runs, with the name of the run and all its options first."""
        settings = own_settings(run.config for run in self)
        return self._with_curves([*option_names(), *settings], named=True)

    def _with_curves(self, names: Sequence[str], named: bool = False) -> pd.DataFrame:
        import pandas as pd

        if not self:
            return pd.DataFrame()
        curves = [run.curves for run in self]
        rows = np.repeat(np.arange(len(self)), [len(curve) for curve in curves])
        options = pd.DataFrame([option_values(run.config, names) for run in self])
        if named:
            options.insert(0, "run", [run.name for run in self])
        columns = pd.concat(curves, ignore_index=True)
        repeated = options.iloc[rows].reset_index(drop=True)
        clear = columns.drop(columns=[name for name in repeated if name in columns])
        return pd.concat([repeated, clear], axis=1)

    def _differing(self) -> list[str]:
        """Return the options that are always shown, and those in which the runs differ."""
        return [*FIRST, *(each.name for each in varying([run.config for run in self], FIRST))]

    def __repr__(self) -> str:
        if not self:
            return "Runs(0 runs)"
        methods, benchmarks = (
            _listed(getattr(run.config, name) for run in self) for name in ("method", "benchmark")
        )
        return f"Runs({len(self)} {_noun(len(self))}: {methods} on {benchmarks})"

    def plot(self, task: int = 1) -> Figure:
        """Draw the accuracy on a task while later ones are learned, with a line per setting.

        Lines are means over seeds, and bands are standard errors.
        """
        from twofold.experiments.plotting import draw

        differing = varying([run.config for run in self], ("method", "seed"))
        named: dict[str, list[Run]] = {}
        for run in self:
            label = ", ".join([run.config.method, *setting_words(run.config, differing)])
            named.setdefault(label, []).append(run)
        return draw(named, task)

    def _settings(self, names: Iterable[str]) -> dict[tuple[object, ...], list[Run]]:
        """Return the runs by the values of these options."""
        groups: dict[tuple[object, ...], list[Run]] = {}
        for run in self:
            groups.setdefault(tuple(option_values(run.config, names).values()), []).append(run)
        return groups

    def _repr_html_(self) -> str:
        names = [name for name in self._differing() if name != "seed"]
        rows = [
            (
                *group,
                len(runs),
                mean_text(run.min for run in runs),
                mean_text(run.avg for run in runs),
            )
            for group, runs in self._settings(names).items()
        ]
        header = (*headings(names), "runs", "MIN", "AVG")
        return notebook.html_table(header, rows, notebook.inline_picture(self))


def matches(config: Config, values: Mapping[str, Any]) -> bool:
    """Tell whether a configuration has these options; a method can be written in several ways."""
    conditions = dict(values)
    if "method" in conditions:
        conditions["method"] = canonical(
            str(conditions["method"]), config.benchmark, config.profile
        )
    return all(config.value(name) == value for name, value in conditions.items())


def _listed(values: Iterable[str]) -> str:
    """Return `er, er+gem`: each value once, and only the first few of many."""
    names = list(dict.fromkeys(values))
    ending = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + ending


def _noun(count: int) -> str:
    return "run" if count == 1 else "runs"


def _curves(file: Path, summary: Mapping[str, Any]) -> dict[str, Array]:
    return checked(read_parquet(file), summary, str(file))


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
