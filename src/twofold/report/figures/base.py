"""Figures by name. A file adds one with `@figure` on the function that draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, Protocol

from matplotlib.figure import Figure

from twofold.compare.selection import (
    Pick,
    method_groups,
    of_methods,
    one_setting,
    run_command,
    select_runs,
)
from twofold.errors import UserError, unknown
from twofold.experiments.profiles import DEFAULT
from twofold.experiments.runs import Run


class Drawing(Protocol):
    """A function that draws the accuracy on a task from runs of one benchmark and mode."""

    def __call__(self, runs: Sequence[Run], task: int = 1) -> Figure: ...


class Shown(NamedTuple):
    """The runs of a store that a figure shows."""

    runs: list[Run]
    setting: str  # why this learning rate and batch size, if there were several
    left_out: list[str]  # methods that it could show, too


@dataclass(frozen=True)
class Kind:
    """A figure that can be drawn."""

    name: str
    about: str
    own_methods: tuple[str, ...]  # that it shows, unless papers prefer others
    pick: Pick
    any_method: bool  # then `pick` is only what it shows if none are named
    draw: Drawing

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it shows if none are named."""
        return tuple(_PREFERRED.get(self.name, self.own_methods))

    def choose(
        self,
        runs: Sequence[Run],
        benchmark: str,
        mode: str = "offline",
        profile: str = DEFAULT,
        methods: Sequence[str] | None = None,
        **narrowers: Any,
    ) -> Shown:
        """Choose the runs to show: of `methods`, if given, in the one setting that is chosen."""
        candidates = select_runs(runs, benchmark, mode, profile, methods, **narrowers)
        picked = candidates if self.any_method and methods else self.picked(candidates)
        chosen, setting = one_setting(picked)
        shown = [run for group in method_groups(chosen) for run in group.runs]
        others = _methods(candidates if self.any_method else picked) - _methods(shown)
        return Shown(shown, setting, sorted(others))

    def picked(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs that it shows; if there are none, raise an error with the command."""
        result = self.pick(runs)
        if runs and not result:
            config = runs[0].config
            command = self.command(config.benchmark, config.mode, config.profile)
            raise UserError(f"no runs for the figure {self.name}: train them with `{command}`")
        return result

    def command(self, benchmark: str, mode: str, profile: str) -> str:
        """Return the command that trains the runs."""
        return run_command(self.methods, benchmark, mode, profile)


KINDS: dict[str, Kind] = {}
_PREFERRED: dict[str, list[str]] = {}


def figure(
    name: str, about: str, methods: Sequence[str], pick: Pick, any_method: bool = False
) -> Callable[[Drawing], Drawing]:
    """Register the function that draws a figure.

    Unless it can show any method, it gets only the runs that `pick` picks.
    """

    def register(draw: Drawing) -> Drawing:
        kind = KINDS[name] = Kind(name, about, tuple(methods), pick, any_method, draw)

        @wraps(draw)
        def draw_picked(runs: Sequence[Run], task: int = 1) -> Figure:
            return draw(kind.picked(runs), task)

        return draw if any_method else draw_picked

    return register


def prefer(name: str, methods: Sequence[str]) -> None:
    """Let a figure show these methods, if there are runs of them and none are named.

    If several papers prefer methods, the figure shows those of all of them.
    """
    preferred = _PREFERRED.setdefault(name, [])
    preferred += [method for method in methods if method not in preferred]


def preferred(name: str) -> Pick:
    """Return a function that picks the runs of preferred methods, or all if there are none."""
    return lambda runs: of_methods(*_PREFERRED.get(name, ()))(runs) or list(runs)


def find_kind(name: str) -> Kind:
    if name not in KINDS:
        raise unknown("figure", name, KINDS)
    return KINDS[name]


def _methods(runs: Sequence[Run]) -> set[str]:
    return {run.config.method for run in runs}
