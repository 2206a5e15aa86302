"""Layouts: what tables show before there are any numbers.

A paper's tables.py has TABLES, a mapping from names to layouts. A new table is a new entry there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from twofold import papers
from twofold.component import Component
from twofold.errors import unknown
from twofold.evaluation.measures import MEASURES
from twofold.experiments import studies
from twofold.objectives import Objective
from twofold.routines import Routine
from twofold.terms import Addition

SIGNS = {"upper bound": "≤", "lower bound": "≥", "approximate": "≈", "unaffected": ""}

Part = Literal["benchmark", "mode", "LR", "BS"]


@dataclass(frozen=True)
class Metric:
    """An entry of the summaries as a table shows it."""

    name: str
    label: str
    decimals: int = 1
    relative_to: str = ""  # a method: show the ratio to its value
    portable: bool = True  # whether numbers from different machines can be compared
    thinned: str = ""  # its sign if not every iteration was evaluated: ≤, ≥ or ≈
    about: str = ""  # its note below the table

    @property
    def key(self) -> str:
        """The name for programs: `min`, `seconds.training`, `seconds.training/er`."""
        return f"{self.name}/{self.relative_to}" if self.relative_to else self.name

    @property
    def short(self) -> str:
        """The name for people: `min`, `gap_depth`, `raw_min`."""
        return self.key.replace("raw_measures.", "raw_").replace("measures.", "")


MIN, AVG = Metric("min", "MIN", thinned="≤"), Metric("avg", "AVG")


@dataclass(frozen=True)
class Column:
    """A method of a table."""

    method: str  # as in the study's file
    label: str


Columns = tuple[Column, ...]


@dataclass(frozen=True)
class Layout:
    """The layout of a table: the runs of a study that it shows, and their rows and columns."""

    study: str
    title: str
    groups: tuple[Columns, ...] = ()  # columns that are compared; or all methods, by objective
    blocks: tuple[Part, ...] = ()  # there is a block for each of these,
    heads: tuple[Part, ...] = ()  # in it rows for each of those, and a row per metric
    metrics: tuple[Metric, ...] = (MIN, AVG)
    setting: Literal["study", "chosen", "all"] = "study"  # which learning rate and batch size
    chosen_by: tuple[str, ...] = ()  # the plain methods whose final accuracy decides
    bold: bool = False  # mark the highest of each group
    transposed: bool = False  # a row per method, a column per metric
    remark: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)  # the paper's names of components
    paper: str = ""  # the paper that it belongs to; filled in when it is found

    def only(self, names: Sequence[str]) -> Layout:
        """Return the layout with these metrics, in this order: its own, or any measures."""
        own = {metric.short: metric for metric in self.metrics}
        return dataclasses.replace(self, metrics=tuple(find_metric(name, own) for name in names))


@cache
def tables() -> papers.Catalogue[Layout]:
    """Return the layouts of all papers' tables by name."""
    return papers.Catalogue(
        "table",
        {
            paper: {name: _placed(layout, paper) for name, layout in module.TABLES.items()}
            for paper, module in papers.modules("tables").items()
        },
    )


def _placed(layout: Layout, paper: str) -> Layout:
    return dataclasses.replace(
        layout, paper=paper, study=studies.shipped().name(paper, layout.study)
    )


def label_of(method: str, labels: Mapping[str, str] | None = None) -> str:
    """Return a method's name for people: `ER + A-GEM`.

    labels: names of components, for those that don't name themselves.
    """
    return " + ".join(_label(part, labels or {}) for part in method.split("+"))


def _label(part: str, labels: Mapping[str, str]) -> str:
    kinds: list[Mapping[str, type[Component]]] = [
        Objective.known,
        Addition.known,
        Routine.known,
    ]
    texts = [getattr(kind[part], "label", "") for kind in kinds if part in kind]
    return next(filter(None, texts), labels.get(part, part))


def columns(*methods: str, labels: Mapping[str, str] | None = None) -> Columns:
    """Return a column per method."""
    return tuple(Column(method, label_of(method, labels)) for method in methods)


def find_metric(name: str, own: Mapping[str, Metric] | None = None) -> Metric:
    """Return a metric by its short name: of these, or any measure, such as `lca` or `raw_lca`."""
    known = all_metrics() | dict(own or {})
    if name not in known:
        listed = [each for each in known if each.startswith("raw_") == name.startswith("raw_")]
        raise unknown("metric", name, listed)
    return known[name]


@cache
def all_metrics() -> dict[str, Metric]:
    """Return the measures as metrics by their short names; MIN and AVG need no curves."""
    metrics = [measured(key, raw) for raw in (False, True) for key in MEASURES]
    return {metric.short: metric for metric in (*metrics, MIN, AVG)}


def measured(key: str, raw: bool = False) -> Metric:
    """Return one of the MEASURES as a metric; raw: of the weights that are trained."""
    measure, title = MEASURES[key], MEASURES[key].title
    about = f"{measure.explanation} In {measure.unit}; {measure.better} is better."
    trained = f"{title} of the trained weights, where different ones are evaluated (`ema`)."
    return Metric(
        f"raw_measures.{key}" if raw else f"measures.{key}",
        f"raw {title}" if raw else title,
        decimals=0 if measure.unit == "iterations" else 1,
        thinned=SIGNS[measure.thinned],
        about=trained if raw else about,
    )
