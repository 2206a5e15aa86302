"""Figures by name. A file in this folder adds one, with `@figure` on the function that draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import NamedTuple, Protocol

from matplotlib.figure import Figure

from twofold.errors import UserError, unknown
from twofold.experiments.runs import Run
from twofold.report.figures.picking import Pick, method_cells, one_setting, run_command, select_runs


class Draw(Protocol):
    """Draws the accuracy on a task, from runs of one benchmark, mode and profile."""

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
    pick: Pick
    any_method: bool  # then `pick` is only what it shows if none are named
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
        """What it shows: of `methods`, if given; with the setting that the paper's rule chooses."""
        found = select_runs(runs, benchmark, mode, profile, methods, **narrowers)
        picked = found if self.any_method and methods else self.picked(found)
        chosen, setting = one_setting(picked)
        shown = [run for cell in method_cells(chosen) for run in cell.runs]
        others = _methods(found if self.any_method else picked) - _methods(shown)
        return Shown(shown, setting, sorted(others))

    def picked(self, runs: Sequence[Run]) -> list[Run]:
        """Those of the runs that it shows; where there are none, an error says how to make them."""
        found = self.pick(runs)
        if runs and not found:
            config = runs[0].config
            command = self.command(config.benchmark, config.mode, config.profile)
            raise UserError(f"no runs for the figure {self.name}: make them with `{command}`")
        return found

    def command(self, benchmark: str, mode: str, profile: str) -> str:
        """That makes the runs."""
        return run_command(self.methods, benchmark, mode, profile)


KINDS: dict[str, Kind] = {}


def figure(
    name: str, about: str, methods: Sequence[str], pick: Pick, any_method: bool = False
) -> Callable[[Draw], Draw]:
    """Registers the function that draws a figure.

    Unless it can show any method, it gets those of the runs that `pick` picks.
    """

    def register(draw: Draw) -> Draw:
        kind = KINDS[name] = Kind(name, about, tuple(methods), pick, any_method, draw)

        @wraps(draw)
        def draw_picked(runs: Sequence[Run], task: int = 1) -> Figure:
            return draw(kind.picked(runs), task)

        return draw if any_method else draw_picked

    return register


def find_kind(name: str) -> Kind:
    if name not in KINDS:
        raise unknown("figure", name, KINDS)
    return KINDS[name]


def _methods(runs: Sequence[Run]) -> set[str]:
    return {run.config.method for run in runs}
