"""Figures by name. A file in this folder adds one, with `@figure` on the function that draws it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from matplotlib.figure import Figure

from twofold.errors import UserError, unknown
from twofold.experiments.runs import Run
from twofold.report.figures.picking import Pick, method_cells, one_setting, select_runs


class Draw(Protocol):
    """Draws runs of one benchmark, mode and profile: all it is given, the accuracy on a task."""

    def __call__(self, runs: Sequence[Run], task: int = 1) -> Figure: ...


class Shown(NamedTuple):
    """What of a store goes into a figure."""

    runs: list[Run]
    setting: str  # why this learning rate and batch size, if there were several
    left_out: list[str]  # methods that it could show, too


@dataclass(frozen=True)
class Kind:
    """A figure that can be drawn."""

    name: str
    about: str
    methods: tuple[str, ...]  # that it is made of
    pick: Pick  # which runs it shows; if it is open, only if nobody names methods
    open: bool  # whether it can show any methods
    draw: Draw

    def choose(
        self,
        runs: Sequence[Run],
        benchmark: str,
        mode: str = "offline",
        profile: str = "paper",
        methods: Sequence[str] | None = None,
        **narrowers: float | None,
    ) -> Shown:
        """The runs that it shows: of `methods`, if given; with the setting of the paper's rule."""
        found = select_runs(runs, benchmark, mode, profile, methods, **narrowers)
        picked = found if self.open and methods else self.pick(found)
        if not picked:
            command = self.command(benchmark, mode, profile)
            raise UserError(f"no runs for the figure {self.name}: make them with `{command}`")
        chosen, setting = one_setting(picked)
        shown = [run for cell in method_cells(chosen) for run in cell.runs]
        others = _methods(found if self.open else picked) - _methods(shown)
        return Shown(shown, setting, sorted(others))

    def command(self, benchmark: str, mode: str, profile: str) -> str:
        """That makes the runs."""
        words = ["twofold", "run", benchmark, *self.methods, "--seeds", "5"]
        words += ["--mode", mode] if mode != "offline" else []
        words += ["--profile", profile] if profile != "paper" else []
        return shlex.join(words)


KINDS: dict[str, Kind] = {}


def figure(
    name: str, about: str, methods: Sequence[str], pick: Pick, open: bool = False
) -> Callable[[Draw], Draw]:
    """Registers the function that draws a figure."""

    def register(draw: Draw) -> Draw:
        KINDS[name] = Kind(name, about, tuple(methods), pick, open, draw)
        return draw

    return register


def find_kind(name: str) -> Kind:
    if name not in KINDS:
        raise unknown("figure", name, KINDS)
    return KINDS[name]


def _methods(runs: Sequence[Run]) -> set[str]:
    return {run.config.method for run in runs}
