"""The paper's tables before there are any numbers. A new table is a new entry of TABLES."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twofold.errors import unknown
from twofold.evaluation.measures import MEASURES

NAMES = {
    "finetune": "Finetune",
    "er": "ER",
    "joint": "Joint",
    "der": "DER",
    "bic": "BiC",
    "gem": "GEM",
    "agem": "A-GEM",
}
Part = Literal["benchmark", "mode", "LR", "BS"]


@dataclass(frozen=True)
class Metric:
    """An entry of the summaries as a table shows it."""

    name: str
    label: str
    decimals: int = 1
    relative_to: str = ""  # a method: show how many times its value
    portable: bool = True  # whether numbers from different machines can be compared
    thinned: str = ""  # its sign where not every iteration was evaluated: ≤, ≥ or ≈
    about: str = ""  # what is said of it below the table

    @property
    def key(self) -> str:
        """For programs: `min`, `seconds.training`, `seconds.training/er`."""
        return f"{self.name}/{self.relative_to}" if self.relative_to else self.name

    @property
    def short(self) -> str:
        """As one asks for it: `min`, `gap_depth`, `raw_min`."""
        return self.key.replace("raw_measures.", "raw_").replace("measures.", "")


MIN, AVG = Metric("min", "MIN", thinned="≤"), Metric("avg", "AVG")
SECONDS = Metric("seconds.training", "Time [s]", decimals=2, portable=False)
TIMES_ER = Metric("seconds.training", "Times ER", decimals=2, relative_to="er")


@dataclass(frozen=True)
class Column:
    method: str  # as the study's file has it
    label: str


Group = tuple[Column, ...]


@dataclass(frozen=True)
class Layout:
    """What a table shows: the runs of a study, in which rows and columns."""

    study: str
    title: str
    groups: tuple[Group, ...] = ()  # of columns that are compared; or all methods, by objective
    blocks: tuple[Part, ...] = ()  # there is a block for each of these,
    heads: tuple[Part, ...] = ()  # in it rows for each of those, and a row for each metric
    metrics: tuple[Metric, ...] = (MIN, AVG)
    setting: Literal["study", "chosen", "all"] = "study"  # which learning rate and batch size
    chosen_by: tuple[str, ...] = ()  # the plain methods whose final accuracy decides
    bold: bool = False  # mark the highest of each group
    transposed: bool = False  # a row a method, a column a metric
    remark: str = ""

    def only(self, names: Sequence[str]) -> Layout:
        """With these metrics, in this order."""
        own = {metric.short: metric for metric in self.metrics}
        for name in names:
            if name not in own:
                raise unknown("metric", name, own)
        return dataclasses.replace(self, metrics=tuple(own[name] for name in names))


def label_of(method: str) -> str:
    """`ER + A-GEM`."""
    return " + ".join(NAMES.get(part, part) for part in method.split("+"))


def _group(*methods: str) -> Group:
    return tuple(Column(method, label_of(method)) for method in methods)


SIGNS = {"upper bound": "≤", "lower bound": "≥", "approximate": "≈", "unaffected": ""}


def _measured(key: str, raw: bool = False) -> Metric:
    """One of the MEASURES; raw: of the weights that are trained."""
    measure, title = MEASURES[key], MEASURES[key].title
    about = f"{measure.explanation} In {measure.unit}; {measure.better} is better."
    trained = f"{title} of the weights that are trained, where others are judged (`ema`)."
    return Metric(
        f"raw_measures.{key}" if raw else f"measures.{key}",
        f"raw {title}" if raw else title,
        decimals=0 if measure.unit == "iterations" else 1,
        thinned=SIGNS[measure.thinned],
        about=trained if raw else about,
    )


_SHOWN = (  # the rest of MEASURES is in `twofold runs show`
    *("min", "avg", "residual", "wc_acc", "gap_depth", "recovery", "recovered"),
    *("wf10", "wf100", "wp10", "wp100", "aaa", "new_speed", "new_accuracy"),
)
_GAMMAS = tuple(
    Column(f"er+gem(gamma={gamma},when=always)", f"γ = {gamma}")
    for gamma in ("0", "0.05", "0.1", "0.5", "0.8", "1")
)

TABLES = {
    "main": Layout(
        study="main",
        title="ER and full replay, by themselves and with the routines of GEM and A-GEM",
        groups=(_group("er", "er+gem", "er+agem"), _group("joint", "joint+gem", "joint+agem")),
        heads=("benchmark", "mode", "LR", "BS"),
        setting="chosen",
        chosen_by=("er", "joint"),
        bold=True,
    ),
    "sota": Layout(
        study="sota",
        title="A-GEM's routine on top of DER and BiC",
        groups=(_group("der", "der+agem"), _group("bic", "bic+agem")),
        heads=("benchmark", "mode", "LR", "BS"),
        setting="chosen",
        chosen_by=("der", "bic"),
    ),
    "timing": Layout(
        study="timing",
        title="Training time, evaluation left out",
        groups=(_group("er", "er+agem", "er+gem"),),
        blocks=("benchmark", "mode", "LR", "BS"),
        metrics=(SECONDS, TIMES_ER),
        transposed=True,
        remark="Seconds depend on the machine and on what else it does: compare the ratios. Here "
        "they hold all of a training step; the paper's leave out sampling, projection and update.",
    ),
    "gamma": Layout(
        study="gamma",
        title="ER + GEM, projecting at every iteration, by its hyperparameter γ; and ER",
        groups=((*_GAMMAS, *_group("er")),),
        blocks=("benchmark", "mode", "LR", "BS"),
        bold=True,
    ),
    "appendix": Layout(
        study="appendix",
        title="All methods with all learning rates (LR) and mini-batch sizes (BS)",
        groups=(
            _group("finetune", "gem", "agem"),
            _group("er", "er+gem", "er+agem"),
            _group("der", "der+agem"),
            _group("bic", "bic+agem"),
            _group("joint", "joint+gem", "joint+agem"),
        ),
        blocks=("benchmark", "mode"),
        heads=("BS", "LR"),
        setting="all",
    ),
    "trajectories": Layout(
        study="trajectories",
        title="Routines and chains of them: what the gap costs, and what closing it costs",
        blocks=("benchmark", "mode", "LR", "BS"),
        metrics=(*map(_measured, _SHOWN), _measured("min", raw=True), _measured("avg", raw=True)),
        transposed=True,
        remark="No column is enough by itself: who stops learning has no gap. docs/measures.md "
        "tells how to read them.",
    ),
}
