"""Cells: runs that differ in nothing but their seed, as tables, figures and the page show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from twofold.experiments.config import Config
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


def cells(runs: Iterable[Run]) -> list[Cell]:
    """In the order in which their first runs come."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        alike = dataclasses.replace(run.config, seed=0)
        groups.setdefault(f"{alike.profile} {alike.identity()}", []).append(run)
    return [Cell(tuple(sorted(own, key=lambda run: run.config.seed))) for own in groups.values()]
