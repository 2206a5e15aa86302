"""Plans: which evaluation, seeds and tasks of a study fit into the available time.

Reductions are tried in a fixed order: first those that change no number, then those that make MIN
a bound, then fewer seeds, and at last fewer tasks.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twofold.benchmarks import Recipe
from twofold.errors import UserError
from twofold.experiments.archive import identity_of
from twofold.experiments.config import Config
from twofold.experiments.digests import serving_identities, with_data
from twofold.experiments.estimate import Estimator, command_seconds, newest
from twofold.experiments.store import Store
from twofold.text import counted, spoken

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
EXACT = "MIN and AVG exact"
BOUND = "MIN an upper bound, AVG exact"

# Each adds to the ones before it. A run that has an evaluation of its own keeps it.
EVALUATIONS: list[tuple[str, dict[str, Any]]] = [
    (EXACT, {}),
    (EXACT, {"eval_precision": "auto"}),
    (EXACT, {"eval_schedule": "exact-min:10"}),
    (EXACT, {"eval_schedule": "exact-min:100"}),
    (BOUND, {"eval_schedule": "dense:100:20"}),
    (BOUND, {"eval_schedule": "dense:50:100"}),
    (f"{BOUND}; MIN on 500 images per task", {"eval_size": 500}),
    (f"{BOUND}; MIN on 200 images per task", {"eval_size": 200}),
]

PROTOCOL = {each.name: each.default for each in dataclasses.fields(Config)}


@dataclass(frozen=True)
class Reduction:
    """What a plan leaves out of the protocol."""

    exactness: str  # what MIN and AVG are
    evaluation: dict[str, Any]  # the options that differ from the protocol's
    seeds: int | None = None  # only this many
    tasks: int | None = None  # only the first ones

    def __str__(self) -> str:
        words = [f"{name} {value}" for name, value in self.evaluation.items()]
        words += [f"{counted(self.seeds, 'seed')} only"] if self.seeds else []
        words += [f"the first {self.tasks} tasks only"] if self.tasks else []
        return f"{', '.join(words) or 'the protocol'}: {self.exactness}"

    def of(self, configs: Sequence[Config]) -> list[Config]:
        """Return the reduced runs."""
        seeds = sorted({config.seed for config in configs})[: self.seeds]
        return [self._reduced(config) for config in configs if config.seed in seeds]

    def _reduced(self, config: Config) -> Config:
        changes = {
            name: value
            for name, value in self.evaluation.items()
            if getattr(config, name) == PROTOCOL[name]
        }
        if self.tasks:
            changes["tasks"] = min(self.tasks, _tasks(config))
        return dataclasses.replace(config, **changes)


@dataclass(frozen=True)
class Plan:
    """Reduced runs, with the time that they take."""

    reduction: Reduction
    configs: list[Config]
    seconds: float


def seconds_of(text: str) -> float:
    """Read `90s`, `30min`, `12h` or `1.5d`."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|min|h|d)\s*", text)
    if match is None or float(match[1]) == 0:
        raise UserError(f"within must be a time such as 90s, 30min, 12h or 2d, not {text[:40]!r}")
    return float(match[1]) * UNITS[match[2]]


def reductions(configs: Sequence[Config]) -> list[Reduction]:
    """Return the reductions in the order in which they are tried, from none to the largest.

    An evaluation that the runs have anyway is no reduction.
    """
    changes: dict[str, Any] = {}
    all_reductions: list[Reduction] = []
    for exactness, change in EVALUATIONS:
        changes |= change
        reduction = Reduction(exactness, dict(changes))
        if not all_reductions or reduction.of(configs) != all_reductions[-1].of(configs):
            all_reductions.append(reduction)
    least, seeds = all_reductions[-1], len({config.seed for config in configs})
    all_reductions += [
        dataclasses.replace(least, seeds=count) for count in (3, 2, 1) if count < seeds
    ]
    least, tasks = all_reductions[-1], max(map(_tasks, configs))
    while tasks > 2:
        tasks = (tasks + 1) // 2
        reduction = dataclasses.replace(least, tasks=tasks, exactness="MIN and AVG of fewer tasks")
        all_reductions.append(reduction)
    return all_reductions


def fit(
    configs: Sequence[Config], within: str, workers: int, store: Store, data: Path | None
) -> list[Plan]:
    """Return the plans from the protocol to the first one that fits into a time."""
    available = seconds_of(within)
    if any(config.own for config in configs):
        raise UserError("within needs benchmarks by name, since it has to know their size")
    done = {identity_of(folder.name) for folder in store.folders()}
    configs = [with_data(config, data) for config in configs]
    estimator = Estimator(data, finished=newest(store))

    def plan(reduction: Reduction) -> Plan:
        runs = reduction.of(configs)
        missing = (run for run in runs if not done or done.isdisjoint(serving_identities(run)))
        left = [estimator.seconds(run) for run in missing]
        return Plan(reduction, runs, command_seconds(left, workers))

    tried, known = list[Plan](), reductions(configs)
    if (smallest := plan(known[-1])).seconds > available:
        raise UserError(
            f"nothing fits within {within}: {smallest.reduction}, still takes about "
            f"{spoken(smallest.seconds)} with {counted(workers, 'worker')}"
        )
    for reduction in known:
        tried.append(plan(reduction))
        if tried[-1].seconds <= available:
            break
    return tried


def _tasks(config: Config) -> int:
    return len(config.sequence(Recipe.find(config.benchmark).tasks))
