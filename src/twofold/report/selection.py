"""Which cells belong where in a table: by what they are, not by what they are called."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from twofold.benchmarks import Recipe
from twofold.evaluation.measures import MEASURES
from twofold.evaluation.schedule import Schedule
from twofold.experiments.config import Config
from twofold.experiments.runs import Run
from twofold.report.cells import Cell, mean_and_error

PAPER_EVAL_SIZE = 1000
NEGLIGIBLE = 1e-4  # share of predictions: a hundredth of a point, and tables show tenths
LABELS = ("method", "profile", "device", "seed")  # the components and the rest say what they mean
SMALLER = ("iterations", "tasks", "eval_every", "eval_schedule", "eval_size", "eval_precision")


class Setting(NamedTuple):
    """What is tuned."""

    lr: float
    batch_size: int

    @classmethod
    def of(cls, config: Config) -> Setting:
        return cls(config.lr, config.batch_size)

    def __str__(self) -> str:
        return f"LR {self.lr:g}, BS {self.batch_size}"

    @property
    def order(self) -> tuple[int, float]:
        """That of the paper's appendix: by batch size, the highest learning rate first."""
        return self.batch_size, -self.lr


def essence(config: Config, apart: Iterable[str] = (*Setting._fields, *SMALLER)) -> str:
    """All that decides a run's result, apart from its seed and these fields."""
    names = [field.name for field in dataclasses.fields(config)]
    left_out = {*LABELS, *apart}
    decisive = {name: getattr(config, name) for name in names if name not in left_out}
    return json.dumps(decisive, sort_keys=True)


@dataclass(frozen=True)
class Reductions:
    """How runs are smaller than the paper's, in words; all empty for those that are not."""

    training: tuple[str, ...]  # what is left out, or was another component, changes every number
    schedule: str  # evaluations left out: MIN is an upper bound then, and AVG as it was
    images: str  # MIN on fewer images is another quantity; AVG is on the whole test sets anyway
    precision: str  # predictions in bf16 that audits found to be others than in fp32

    @classmethod
    def of(cls, cell: Cell) -> Reductions:
        config = cell.config
        recipe = Recipe.known.get(config.benchmark)
        training = []
        most = recipe.offline_iterations if recipe and config.mode == "offline" else math.inf
        if config.iterations is not None and config.iterations < most:
            training.append(f"at most {config.iterations} iterations a task")
        if config.tasks is not None and not (recipe and config.tasks == recipe.tasks):
            training.append(f"the first {_several(config.tasks, 'task')} only")
        training += _other_versions(cell.runs[0])
        other = config.eval_size != PAPER_EVAL_SIZE
        return cls(
            tuple(training),
            _schedule_words(Schedule.parse(config.eval_schedule, config.eval_every)),
            f"judged on {_counted(config.eval_size, 'image')} a task" if other else "",
            _precision_words(cell),
        )

    def remarks(self, metric: str) -> tuple[str, ...]:
        """What to say beside a number, but for the schedule, which has a sign of its own."""
        measure = MEASURES.get(metric.rpartition(".")[2])
        if measure is None:  # seconds
            return self.training
        judged = () if measure.whole else filter(None, (self.images, self.precision))
        return (*self.training, *judged)

    def comparable(self, metric: str) -> bool:
        """Whether the number means what the paper's means (MIN perhaps as an upper bound)."""
        return not self.training and not (metric == "min" and self.images)


def _other_versions(run: Run) -> list[str]:
    """Of plugins that were changed since. Of one that is not there, nothing is known."""
    now = zip(run.config.plugins, run.plugins, run.config.plugin_digests(), strict=False)
    return [f"by another {Path(file).name}" for file, then, today in now if today and today != then]


def remarks_on(cells: Iterable[Cell], metric: str) -> tuple[str, ...]:
    """What to say beside a number that several cells have part in."""
    said = (remark for cell in cells for remark in Reductions.of(cell).remarks(metric))
    return tuple(dict.fromkeys(said))


def _precision_words(cell: Cell) -> str:
    """Nothing for runs in fp32, and for those whose audits found next to no difference from it."""
    audits = [run.summary.get("audit", {}) for run in cell.runs]
    different, images = (
        sum(audit.get(k, 0) for audit in audits) for k in ("differences", "images")
    )
    if different <= NEGLIGIBLE * images:
        return ""
    return f"judged in bf16 ({different:,} of {images:,} audited predictions are others in fp32)"


def _schedule_words(schedule: Schedule) -> str:
    if schedule.complete:
        return ""
    sparse = f"every {schedule.sparse:,} iterations and at the end of each task"
    if schedule.dense:
        each = "each of " if schedule.dense > 1 else ""
        first = f"{each}a task's first {_several(schedule.dense, 'iteration')}"
        sparse = f"after {first}, then {sparse}"
    return f"judged {sparse}"


def _several(number: int, noun: str) -> str:
    """`2 tasks`, and of one what follows "the first": `task`."""
    return noun if number == 1 else _counted(number, noun)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("s" if number != 1 else "")


def preference(cell: Cell) -> tuple[object, ...]:
    """For sorting: those nearest to the paper's first; of equals, those with more seeds."""
    config, less = cell.config, Reductions.of(cell)
    size = (-(config.iterations or math.inf), -(config.tasks or math.inf))
    trained = (bool(less.training), *(size if less.training else ()))
    judged = (not cell.complete, bool(less.images), bool(less.precision))
    return (bool(_other_versions(cell.runs[0])), *trained, *judged, -len(cell.runs))


class Shelf:
    """Cells in their places. Runs that are alike are in one cell, whatever their profile's name."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        alike: dict[str, dict[int, Run]] = {}
        for run in (run for cell in cells for run in cell.runs):
            made = f"{essence(run.config, apart=())} {run.plugins}"
            alike.setdefault(made, {})[run.config.seed] = run
        self._cells: dict[str, list[Cell]] = {}
        for seeds in alike.values():
            cell = Cell(tuple(seeds[seed] for seed in sorted(seeds)))
            self._cells.setdefault(essence(cell.config), []).append(cell)

    def cells(self) -> list[Cell]:
        return [cell for own in self._cells.values() for cell in own]

    def find(self, config: Config) -> dict[Setting, Cell]:
        """The cells of a method by learning rate and batch size.

        Of several those made as `config` says, or else those nearest to the paper's.
        """

        said = [name for name in SMALLER if name != "eval_precision"]  # which `preference` weighs

        def order(cell: Cell) -> tuple[object, ...]:
            return any(_differ(cell.config, config, name) for name in said), *preference(cell)

        found: dict[Setting, Cell] = {}
        for cell in sorted(self._cells.get(essence(config), ()), key=order):
            found.setdefault(Setting.of(cell.config), cell)
        return found


def _differ(one: Config, other: Config, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


Found = Mapping[str, Mapping[Setting, Cell]]  # by method and setting


class Choice(NamedTuple):
    """A setting, and why it."""

    setting: Setting
    why: str


def choose(found: Found, plain: Sequence[str], papers: Setting) -> Choice | None:
    """The paper's rule: where the plain methods end highest. None where there are no runs.

    The setting is one for all methods, as in the paper's tables: of those that have the most of
    the plain methods, that with the highest mean of their final accuracies. Without any of them
    the paper's own is taken, or else that with the most runs.
    """
    there = sorted({setting for own in found.values() for setting in own})
    if not there:
        return None
    finals = _finals(found, plain)
    if len(there) == 1:
        choice = Choice(there[0], "the only ones with runs")
    elif finals:
        choice = _highest(finals, plain)
    elif papers in there:
        return Choice(papers, "as in the paper")
    else:
        count = {s: sum(len(own[s].runs) for own in found.values() if s in own) for s in there}
        choice = Choice(max(there, key=lambda s: count[s]), "those with the most runs")
    if choice.setting != papers:
        choice = choice._replace(why=f"{choice.why} (the paper's: {papers})")
    return choice


def _finals(found: Found, plain: Sequence[str]) -> dict[Setting, dict[str, float]]:
    """Final accuracies by setting and plain method. Shortened runs count if there are no others."""
    cells = [(method, s, cell) for method in plain for s, cell in found.get(method, {}).items()]
    full = [each for each in cells if not Reductions.of(each[2]).training]
    finals: dict[Setting, dict[str, float]] = {}
    for method, setting, cell in full or cells:
        finals.setdefault(setting, {})[method] = mean_and_error(cell.values("avg"))[0]
    return finals


def _highest(finals: Mapping[Setting, Mapping[str, float]], plain: Sequence[str]) -> Choice:
    most = max(map(len, finals.values()))
    rivals = {s: mean_and_error(own.values())[0] for s, own in finals.items() if len(own) == most}
    best = max(rivals, key=lambda s: (rivals[s], s))
    methods = [method for method in plain if method in finals[best]]
    why = f"highest final accuracy of plain {' and '.join(methods)} among {len(rivals)} settings"
    for method in methods:
        alone = max(finals, key=lambda s: (finals[s].get(method, -math.inf), s == best))
        if alone != best:
            why += f"; {method} alone ends highest with {alone}"
    return Choice(best, why)
