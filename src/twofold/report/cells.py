"""Cells: runs that differ in nothing but their seed, as tables, figures and the page show them."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from twofold.errors import UserError
from twofold.evaluation.schedule import Schedule
from twofold.experiments.config import Config, paper_seeds
from twofold.experiments.runs import Run


@dataclass(frozen=True)
class Cell:
    """One method in one setting."""

    runs: tuple[Run, ...]  # at least one, by seed

    @property
    def config(self) -> Config:
        """Of the first seed."""
        return self.runs[0].config

    @property
    def seeds(self) -> list[int]:
        return [run.config.seed for run in self.runs]

    @cached_property
    def objective(self) -> str:
        """The "what", as the method's text has it."""
        return what_and_how(self.config)[0]

    @cached_property
    def routines(self) -> str:
        """The "how", as the method's text has it; `sgd` for none."""
        return what_and_how(self.config)[1]

    @property
    def complete(self) -> bool:
        """Whether the model was judged after every iteration; otherwise MIN is an upper bound."""
        return Schedule.parse(self.config.eval_schedule, self.config.eval_every).complete

    @property
    def diverged(self) -> int:
        """How many of the runs did."""
        return sum(bool(run.summary["diverged"]) for run in self.runs)

    def by_seed(self, metric: str) -> dict[int, float]:
        """An entry of the summaries, such as `min` or `seconds.training`, or one of the measures,
        such as `measures.residual` or `raw_measures.min`; None is left out.
        """
        found = {run.config.seed: _entry(run, metric) for run in self.runs}
        return {seed: float(value) for seed, value in found.items() if value is not None}

    def values(self, metric: str) -> list[float]:
        return list(self.by_seed(metric).values())

    def mean(self, metric: str) -> float | None:
        """None where no run has the metric, as MIN with a single task."""
        values = self.values(metric)
        return mean_and_error(values)[0] if values else None

    def error(self, metric: str) -> float | None:
        """The standard error of the mean; None with fewer than two values."""
        values = self.values(metric)
        return mean_and_error(values)[1] if values else None

    def command(self) -> str | None:
        """The one command that makes all seeds; None for a user's own tensors."""
        try:
            made_by: str | None = self.runs[0].summary.get("command") or self.config.command()
            words = shlex.split(made_by or "")
        except (UserError, ValueError):  # a component that is not at hand
            return None
        if "--seed" not in words:
            return None
        place = words.index("--seed")
        count = len(self.seeds)
        if self.seeds == paper_seeds(count):
            words[place : place + 2] = ["--seeds", str(count)]
        else:
            words[place + 1] = ",".join(map(str, self.seeds))
        return shlex.join(words)


def cells(runs: Iterable[Run]) -> list[Cell]:
    """In the order in which their first runs come."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        alike = dataclasses.replace(run.config, seed=0)
        groups.setdefault(f"{alike.profile} {alike.identity()} {run.plugins}", []).append(run)
    return [Cell(tuple(sorted(own, key=lambda run: run.config.seed))) for own in groups.values()]


def paired_differences(one: Cell, other: Cell, metric: str) -> dict[int, float]:
    """The other's minus the one's, for every seed that both have."""
    ones, others = one.by_seed(metric), other.by_seed(metric)
    return {seed: others[seed] - ones[seed] for seed in others if seed in ones}


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    """The mean, and the standard error of the mean: sd with n-1, over the root of n."""
    array = np.array(list(values), float)
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else None
    return float(array.mean()), error


def what_and_how(config: Config) -> tuple[str, str]:
    """The objective and the routines, as the method's text has them."""
    objective = config.components[0][0]
    match = re.fullmatch(rf"({re.escape(objective)}(?:\(.*?\))?)(?:\+(.*))?", config.method)
    if match is None:  # gem is finetune+gem
        return objective, config.method
    return match[1], match[2] or "sgd"


def _entry(run: Run, metric: str) -> Any:
    """`seconds.training` is that of the summary's `seconds`; None where there is none."""
    first, *names = metric.split(".")
    measured = first in ("measures", "raw_measures")
    value: Any = getattr(run, first) if measured else run.summary.get(first)
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
