"""Several runs: selections, data frames and pictures of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from twofold.errors import unknown
from twofold.experiments import notebook
from twofold.experiments.config import (
    Config,
    headings,
    option_names,
    option_values,
    own_settings,
    varying,
)
from twofold.experiments.naming import canonical
from twofold.experiments.runs import FIRST, Run
from twofold.extras import need
from twofold.text import counted, mean_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from twofold.drawing.curves import Task
    from twofold.experiments.plotting import View

NAMED = 4  # methods that `repr(runs)` lists


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
        """The curves, a row per run and iteration, with options of the run first.

        These are benchmark, mode, method and seed, and all options in which the runs differ.
        """
        return self._with_curves(self._differing())

    @property
    def measures(self) -> pd.DataFrame:
        """The measures, a row per run, with the options in which runs differ first."""
        need("frames", "a DataFrame")
        import pandas as pd

        names = self._differing()
        return pd.DataFrame([{**option_values(run.config, names), **run.measures} for run in self])

    def frame(self) -> pd.DataFrame:
        """Return the curves of all runs, with the name of the run and all its options first."""
        settings = own_settings(run.config for run in self)
        return self._with_curves([*option_names(), *settings], named=True)

    def _with_curves(self, names: Sequence[str], named: bool = False) -> pd.DataFrame:
        need("frames", "a DataFrame")
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
        return f"Runs({counted(len(self), 'run')}: {methods} on {benchmarks})"

    def plot(self, task: Task = 1, **view: Unpack[View]) -> Figure:
        """Draw the accuracy on a task while later ones are learned, with a line per setting.

        Lines are means over seeds, and bands are standard errors.

        task: the number of the task, or "mean" for the mean over all tasks begun by then.
        view: `zoom`, iterations after a switch (50), and `labels`, by names in the legend.
        """
        from twofold.experiments.plotting import by_setting, draw

        return draw(by_setting(self), task, **view)

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
