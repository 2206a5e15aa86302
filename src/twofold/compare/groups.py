"""Groups: runs that differ only in their seed, as tables, figures and the page show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from twofold.evaluation.schedule import Schedule
from twofold.experiments.config import Config
from twofold.experiments.naming import what_and_how
from twofold.experiments.runs import Run
from twofold.statistics import mean_and_error


@dataclass(frozen=True)
class Group:
    """One method in one setting."""

    runs: tuple[Run, ...]  # at least one, by seed

    @property
    def config(self) -> Config:
        """The configuration of the first seed."""
        return self.runs[0].config

    @property
    def seeds(self) -> list[int]:
        return [run.config.seed for run in self.runs]

    @cached_property
    def objective(self) -> str:
        """The "what", as in the method's text."""
        return what_and_how(self.config)[0]

    @cached_property
    def routines(self) -> str:
        """The "how", as in the method's text; `sgd` if there is none."""
        return what_and_how(self.config)[1]

    @property
    def schedule(self) -> Schedule:
        """The iterations after which the runs were evaluated."""
        return self.config.schedule

    @property
    def complete(self) -> bool:
        """Whether the model was evaluated after every iteration."""
        return self.schedule.complete

    @property
    def knows_min(self) -> bool:
        """Whether MIN is exact, and not an upper bound."""
        return self.schedule.knows_min

    @property
    def diverged(self) -> int:
        """The number of runs that diverged."""
        return sum(bool(run.summary["diverged"]) for run in self.runs)

    def by_seed(self, metric: str) -> dict[int, float]:
        """Return a metric of each run by seed; runs without it are left out.

        metric: an entry of the summaries, such as `min` or `seconds.training`, or a measure, such
            as `measures.residual` or `raw_measures.min`.
        """
        entries = {run.config.seed: _entry(run, metric) for run in self.runs}
        return {seed: float(value) for seed, value in entries.items() if value is not None}

    def trained_by_seed(self, metric: str) -> dict[int, float]:
        """Return a metric of the trained weights, even if different ones were evaluated."""
        return self.by_seed(f"raw_measures.{metric}" if self.replaces_evaluated else metric)

    @property
    def replaces_evaluated(self) -> bool:
        """Whether a routine has different weights evaluated than it trains."""
        return any("raw_accuracy_after_task" in run.summary for run in self.runs)

    def accuracy_after_first_task(self) -> dict[int, float]:
        """Return the accuracy of the trained weights on the first task at its end, by seed."""
        entry = f"{'raw_' if self.replaces_evaluated else ''}accuracy_after_task"
        ends = {run.config.seed: run.summary.get(entry) for run in self.runs}
        return {seed: float(tasks[0][0]) for seed, tasks in ends.items() if tasks}

    def values(self, metric: str) -> list[float]:
        return list(self.by_seed(metric).values())

    def mean(self, metric: str) -> float | None:
        """Return the mean; None if no run has the metric, such as MIN with a single task."""
        values = self.values(metric)
        return mean_and_error(values)[0] if values else None

    def error(self, metric: str) -> float | None:
        """Return the standard error of the mean; None with fewer than three values."""
        values = self.values(metric)
        return mean_and_error(values)[1] if values else None

    def command(self) -> str | None:
        """Return the command that trains all seeds, from the configuration alone; None if none can.

        What a summary records as its command is never shown: a stranger may have written it.
        """
        seeds: dict[tuple[str, str], list[int]] = {}  # by evaluation, which may be mixed
        configs: dict[tuple[str, str], Config] = {}
        for run in self.runs:
            evaluation = run.config.eval_precision, run.config.eval_schedule
            configs.setdefault(evaluation, run.config)
            seeds.setdefault(evaluation, []).append(run.config.seed)
        commands = [config.command(seeds[each]) for each, config in configs.items()]
        known = [command for command in commands if command]
        return " && ".join(known) if len(known) == len(commands) else None


def groups(runs: Iterable[Run]) -> list[Group]:
    """Group runs that differ only in their seed, in the order of their first runs.

    A user's own data may depend on the seed, such as an order of classes that is drawn. Runs that
    differ in these data, too, form a group if each has a seed and data of its own.
    """
    settings: dict[str, dict[str, list[Run]]] = {}  # by all else, and by the user's own data
    for run in runs:
        config = dataclasses.replace(run.config, seed=0, own="")
        key = f"{config.profile} {config.identity(run.plugins)}"
        settings.setdefault(key, {}).setdefault(run.config.own, []).append(run)
    members = [group for by_data in settings.values() for group in _over_data(by_data)]
    return [Group(tuple(sorted(each, key=lambda run: run.config.seed))) for each in members]


def _over_data(by_data: Mapping[str, list[Run]]) -> list[list[Run]]:
    """Return the runs on all data as one list if each seed has its own, or a list for each."""
    together = [run for runs in by_data.values() for run in runs]
    seeds = {run.config.seed for run in together}
    return [together] if len(by_data) == len(together) == len(seeds) else list(by_data.values())


def paired_differences(one: Group, other: Group, metric: str) -> dict[int, float]:
    """Return `other` minus `one` for every seed that both have."""
    ones, others = one.by_seed(metric), other.by_seed(metric)
    return {seed: others[seed] - ones[seed] for seed in others if seed in ones}


def _entry(run: Run, metric: str) -> Any:
    """Return the entry `training` of the summary's `seconds` for `seconds.training`, or None."""
    first, *names = metric.split(".")
    measured = first in ("measures", "raw_measures")
    value: Any = getattr(run, first) if measured else run.summary.get(first)
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
