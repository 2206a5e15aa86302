"""Which runs a figure shows: by what they are, not by what they are called."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, get_args

from twofold.benchmarks import Recipe
from twofold.errors import UserError, unknown
from twofold.experiments.config import Config, Mode, configure
from twofold.experiments.naming import canonical
from twofold.experiments.profiles import NAMES as PROFILES
from twofold.experiments.profiles import profile as find_profile
from twofold.experiments.runs import Run
from twofold.method import Method
from twofold.objectives import Objective
from twofold.report.cells import Cell, cells
from twofold.report.selection import LABELS, SMALLER, Setting, choose, preference
from twofold.routines import Routine

NARROWERS = ("lr", "batch_size", "iterations")  # settings that `select_runs` can choose by

Pick = Callable[[Sequence[Run]], list[Run]]


def select_runs(
    runs: Sequence[Run],
    benchmark: str,
    mode: str = "offline",
    profile: str = "paper",
    methods: Sequence[str] | None = None,
    **narrowers: float | None,
) -> list[Run]:
    """The runs of a benchmark, mode and profile; only of some methods and settings, if given.

    A run that has another profile's label, and that this profile would make just so, is one of
    them; it gets this profile's label.
    """
    _check_names(runs, benchmark, mode, profile)
    placed = [run for run in runs if (run.config.benchmark, run.config.mode) == (benchmark, mode)]
    found = [alike for run in placed if (alike := _under(run, profile))]
    if not found:
        command = run_command(methods or ["er"], benchmark, mode, profile)
        there = sorted({", ".join(_place(run.config)) for run in runs}) or ["none at all"]
        raise UserError(
            f"no runs of {benchmark}, {mode}, {profile}: make them with `{command}` "
            f"(there are {'; '.join(there)})"
        )
    if methods:
        wanted = [canonical(method, benchmark, profile) for method in methods]
        _check_methods(wanted, {run.config.method for run in found}, (benchmark, mode, profile))
        found = [run for run in found if run.config.method in wanted]
    for name, value in narrowers.items():
        if value is not None:
            found = _narrowed(found, name, value)
    return found


def _check_methods(
    wanted: Iterable[str], known: Collection[str], place: tuple[str, str, str]
) -> None:
    missing = [method for method in wanted if method not in known]
    for method in missing:
        if not _can_be_run(method):
            raise unknown("method", method, known)
    if missing:
        command = run_command(missing, *place)
        raise UserError(f"no runs of {', '.join(missing)}: make them with `{command}`")


def _narrowed(runs: Sequence[Run], name: str, value: float) -> list[Run]:
    values = {_value(run, name) for run in runs}
    if value not in values:
        raise UserError(f"no runs with {_words(name)} {value}: there are {_listed(values)}")
    return [run for run in runs if _value(run, name) == value]


def _check_names(runs: Sequence[Run], benchmark: str, mode: str, profile: str) -> None:
    benchmarks = {*Recipe.known, *(run.config.benchmark for run in runs)}
    names: list[tuple[str, str, Iterable[str]]] = [
        ("benchmark", benchmark, benchmarks),
        ("mode", mode, get_args(Mode)),
        ("profile", profile, PROFILES),
    ]
    for kind, name, known in names:
        if name not in known:
            raise unknown(kind, name, known)


def run_command(methods: Sequence[str], benchmark: str, mode: str, profile: str) -> str:
    """That makes runs of these methods with the paper's seeds."""
    words = ["twofold", "run", benchmark, *methods, "--seeds", "5"]
    words += ["--mode", mode] if mode != "offline" else []
    words += ["--profile", profile] if profile != "paper" else []
    return shlex.join(words)


def _can_be_run(method: str) -> bool:
    try:
        Method.parse(method)
    except UserError:
        return False
    return True


def of_methods(*methods: str) -> Pick:
    """A function that picks the runs of these methods."""

    def wanted(config: Config) -> bool:
        texts = [canonical(method, config.benchmark, config.profile) for method in methods]
        return config.method in texts

    return lambda runs: [run for run in runs if wanted(run.config)]


def one_setting(runs: Sequence[Run]) -> tuple[list[Run], str]:
    """The runs with the learning rate and batch size of the paper's rule; and why these, if said.

    Where every method has but one, such as DER its own, there is nothing to choose. A benchmark of
    a user's own is not the paper's business: there, somebody has to choose.
    """
    found: dict[str, dict[Setting, Cell]] = {}
    for cell in sorted(cells(runs), key=preference):
        found.setdefault(cell.config.method, {}).setdefault(Setting.of(cell.config), cell)
    several = any(len(own) > 1 for own in found.values())
    if not several or runs[0].config.benchmark not in Recipe.known:
        return list(runs), ""
    plain = sorted({cell.objective for own in found.values() for cell in own.values()})
    usual = configure(runs[0].config.benchmark, "er", mode=runs[0].config.mode)
    choice = choose(found, plain, Setting.of(usual))
    if choice is None:
        return list(runs), ""
    chosen = [run for run in runs if Setting.of(run.config) == choice.setting]
    return chosen, f"{choice.setting}, {choice.why}"


def method_cells(runs: Sequence[Run]) -> list[Cell]:
    """One cell a method: by objective, the plain one first.

    Of runs that are the same but for their length, or for how they were judged, those nearest to
    the paper's are taken.
    """
    if not runs:
        raise UserError("a figure needs at least one run")
    _check_alike(runs, ("benchmark", "mode", "profile"), "the runs")
    names = [field.name for field in dataclasses.fields(Config)]
    decisive = [name for name in names if name not in (*LABELS, *SMALLER)]
    methods: dict[str, list[Cell]] = {}
    for cell in sorted(cells(runs), key=preference):
        methods.setdefault(cell.config.method, []).append(cell)
    for method, own in methods.items():
        _check_alike([cell.runs[0] for cell in own], decisive, f"{method}'s runs")
    chosen = [own[0] for own in methods.values()]
    return sorted(chosen, key=lambda cell: (cell.objective, cell.routines != "sgd", cell.routines))


def _under(run: Run, profile: str) -> Run | None:
    """The run with this profile's label, if it is what the profile would make."""
    config = run.config
    if config.profile == profile:
        return run
    (objective, options), *routines = config.components
    try:
        method = Method(
            (Objective.find(objective), options),
            tuple((Routine.find(name), given) for name, given in routines),
        )
    except UserError:  # a component that is not at hand
        return None
    usual = find_profile(profile, config.benchmark, method)
    if (usual.memory_grouping, usual.whitening) != (config.memory_grouping, config.whitening):
        return None
    alike = dataclasses.replace(config, profile=profile, method=method.text(usual.options))
    return dataclasses.replace(run, config=alike)


def _place(config: Config) -> tuple[str, str, str]:
    return config.benchmark, config.mode, config.profile


def _check_alike(runs: Sequence[Run], names: Iterable[str], whose: str) -> None:
    for name in names:
        values = {_value(run, name) for run in runs}
        if len(values) > 1:
            chosen = name in (*NARROWERS, "mode", "profile")
            option = f"choose one with --{name.replace('_', '-')}"
            way = option if chosen else "put them in folders of their own"
            raise UserError(f"{whose} differ in {_words(name)} ({_listed(values)}): {way}")


def _value(run: Run, name: str) -> Any:
    if name == "iterations":  # of a task; the configuration only knows a limit
        return int((run.columns["task"] == 1).sum())
    value = getattr(run.config, name)
    return str(value) if isinstance(value, list) else value


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(str, sorted(values, key=lambda value: (value is None, value))))
