"""Figures by name. A file adds one with `@figure` on the function that draws it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from matplotlib.figure import Figure

from twofold.compare.choice import one_setting
from twofold.compare.selection import Pick, method_groups, of_methods, run_command, select_runs
from twofold.errors import UserError, unknown
from twofold.experiments.profiles import DEFAULT
from twofold.experiments.runs import Run

# A function that draws runs of one benchmark and mode. Its keywords are the options of the figure,
# such as `task` and `zoom`.
Drawing = Callable[..., Figure]

ALL_RUNS = "among"  # the keyword of drawings that choose colours among all runs of a store


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
    drawing: Drawing
    words: tuple[str, ...] = ()  # further words of the command that trains its runs

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it shows if none are named."""
        return tuple(_PREFERRED.get(self.name, self.own_methods))

    def draw(self, runs: Sequence[Run], among: Sequence[Run] = (), **options: Any) -> Figure:
        """Draw the runs. Options that are None are left out.

        among: all runs of the store, so that a method's colour is that of all its figures.
        """
        self.check_options(**options)
        given = {name: value for name, value in options.items() if value is not None}
        coloured = {ALL_RUNS: among} if ALL_RUNS in self._keywords else {}
        return self.drawing(runs, **coloured, **given)

    def check_options(self, **options: Any) -> None:
        """Raise an error if a given option is not one of this figure."""
        own = [name for name in self._keywords if name != ALL_RUNS]
        for name, value in options.items():
            if value is not None and name not in own:
                others = ", ".join(sorted(own)) or "none"
                raise UserError(f"the figure {self.name} has no option {name} (it has {others})")

    @property
    def _keywords(self) -> list[str]:
        return [*inspect.signature(self.drawing).parameters][1:]

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
            place = config.benchmark, config.mode, config.profile
            command = self.command(place, runs)
            raise UserError(f"no runs for the figure {self.name}: train them with `{command}`")
        return result

    def command(self, place: tuple[str, str, str], runs: Iterable[Run]) -> str:
        """Return the command that trains the runs of a benchmark, mode and profile."""
        command = run_command(self.methods, place, runs)
        return " ".join([command, *self.words])


D = TypeVar("D", bound=Drawing)

KINDS: dict[str, Kind] = {}
_PREFERRED: dict[str, list[str]] = {}


def figure(
    name: str,
    about: str,
    methods: Sequence[str],
    pick: Pick,
    any_method: bool = False,
    command: Sequence[str] = (),
) -> Callable[[D], D]:
    """Register the function that draws a figure. Its keywords are the figure's options.

    Unless it can show any method, it gets only the runs that `pick` picks.

    command: further words of the command that trains its runs.
    """

    def register(draw: D) -> D:
        kind = KINDS[name] = Kind(
            name, about, tuple(methods), pick, any_method, draw, tuple(command)
        )

        @wraps(draw)
        def draw_picked(runs: Sequence[Run], /, *args: Any, **options: Any) -> Figure:
            return draw(kind.picked(runs), *args, **options)

        return draw if any_method else cast(D, draw_picked)

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
