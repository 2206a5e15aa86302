"""Reductions of runs, in words: less training or evaluation than in full runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from twofold.benchmarks import Recipe
from twofold.compare.groups import Group
from twofold.discovery import executed_digest
from twofold.evaluation.measures import MEASURES
from twofold.evaluation.schedule import Schedule
from twofold.experiments.runs import Run

FULL_EVAL_SIZE = 1000
NEGLIGIBLE = 1e-4  # share of predictions: a hundredth of a point, and tables show tenths


@dataclass(frozen=True)
class Reductions:
    """The reductions of a group's runs. All entries are empty for full runs."""

    training: tuple[str, ...]  # less training, or a different component, changes every number
    schedule: str  # with evaluations left out, MIN is an upper bound; AVG does not change
    min_known: bool  # MIN is exact nevertheless
    images: str  # MIN on fewer images is a different quantity; AVG is on the whole test sets
    precision: str  # predictions in bf16 that audits found to be different in fp32

    @classmethod
    def of(cls, group: Group) -> Reductions:
        config = group.config
        recipe = Recipe.known.get(config.benchmark)
        training = []
        most = recipe.offline_iterations if recipe and config.mode == "offline" else math.inf
        if config.iterations is not None and config.iterations < most:
            training.append(f"at most {config.iterations} iterations per task")
        if config.tasks is not None and not (recipe and config.tasks == recipe.tasks):
            training.append(f"the first {_several(config.tasks, 'task')} only")
        examples = group.runs[0].summary.get("examples", {})
        if recipe and recipe.published_sizes and examples:
            published = recipe.published_sizes
            training.append(
                f"trained on {examples['train']:,} of {published.train:,} examples per task, "
                f"tested on {examples['test']:,} of {published.test:,}"
            )
        if config.validation:
            training.append(
                f"evaluated on {config.validation:.3g} of the training images, held out"
            )
        training += changed_plugins(group.runs[0])
        evaluated = min(config.eval_size, examples.get("test", config.eval_size))
        reduced_size = evaluated != FULL_EVAL_SIZE
        return cls(
            tuple(training),
            _schedule_words(group.schedule),
            group.schedule.knows_min,
            f"evaluated on {_counted(evaluated, 'image')} per task" if reduced_size else "",
            _precision_words(group),
        )

    def remarks(self, metric: str) -> tuple[str, ...]:
        """Return the remarks on a number, without the schedule, which has a sign of its own."""
        measure = MEASURES.get(metric.rpartition(".")[2])
        if measure is None:  # seconds
            return self.training
        evaluation = () if measure.whole else filter(None, (self.images, self.precision))
        return (*self.training, *evaluation)

    def bound(self, metric: str) -> str:
        """Return why a number is only a bound: when the model was evaluated; or nothing."""
        measure = MEASURES.get(metric.rpartition(".")[2])
        if measure is None or measure.thinned == "unaffected":
            return ""
        return "" if self.min_known and not measure.needs_curve else self.schedule

    def comparable(self, metric: str) -> bool:
        """Return whether the number means the same as a full run's (MIN perhaps as a bound)."""
        return not self.training and not (metric == "min" and self.images)


def remarks_on(groups: Iterable[Group], metric: str) -> tuple[str, ...]:
    """Return the remarks on a number that comes from several groups."""
    remarks = (remark for group in groups for remark in Reductions.of(group).remarks(metric))
    return tuple(dict.fromkeys(remarks))


def changed_plugins(run: Run) -> list[str]:
    """Name the plugins that were changed since the run; nothing is known of a missing one."""
    loaded = map(executed_digest, run.config.plugins)  # the files of a store are not opened
    files = zip(run.config.plugins, run.plugins, loaded, strict=False)
    return [
        f"with a different version of {Path(file).name}"
        for file, recorded, current in files
        if current and current != recorded
    ]


def _precision_words(group: Group) -> str:
    """Return nothing for fp32, or if audits found almost no differences from it."""
    audits = [run.summary.get("audit", {}) for run in group.runs]
    different, images = (
        sum(audit.get(k, 0) for audit in audits) for k in ("differences", "images")
    )
    if different <= NEGLIGIBLE * images:
        return ""
    return f"evaluated in bf16 ({different:,} of {images:,} audited predictions differ from fp32)"


def _schedule_words(schedule: Schedule) -> str:
    if schedule.complete:
        return ""
    sparse = f"every {schedule.sparse:,} iterations and at the end of each task"
    if schedule.dense:
        each = "each of " if schedule.dense > 1 else ""
        first = f"{each}a task's first {_several(schedule.dense, 'iteration')}"
        sparse = f"after {first}, then {sparse}"
    return f"evaluated {sparse}"


def _several(number: int, noun: str) -> str:
    """Return `2 tasks`, or `task` for one: both follow "the first"."""
    return noun if number == 1 else _counted(number, noun)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("s" if number != 1 else "")
