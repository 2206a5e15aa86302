"""Selection: the runs of a place and of methods, for figures, comparisons and scripts.

Runs are known by what they are, not by what they are called: a run belongs to a profile if the
profile would have configured it in the same way, whatever its label says.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from twofold.benchmarks import Recipe
from twofold.choices import Mode
from twofold.compare.groups import Group, groups
from twofold.compare.shelf import SMALLER, preference
from twofold.compare.starts import one_start_per_seed
from twofold.errors import UserError, unknown
from twofold.experiments import profiles
from twofold.experiments.config import Config, own_settings
from twofold.experiments.naming import canonical
from twofold.experiments.runs import Run
from twofold.method import Method
from twofold.objectives import Objective
from twofold.routines import Routine
from twofold.terms import Addition

# Settings that `select_runs` can choose by.
NARROWERS = ("optimizer", "lr", "batch_size", "iterations")

Pick = Callable[[Sequence[Run]], list[Run]]


def select_runs(
    runs: Sequence[Run],
    benchmark: str,
    mode: str = "offline",
    profile: str = profiles.DEFAULT,
    methods: Sequence[str] | None = None,
    **narrowers: Any,
) -> list[Run]:
    """Return the runs of a benchmark, mode and profile, of these methods and settings if given.

    A run with a different profile's label that this profile would configure in the same way is one
    of them. It gets this profile's label.
    """
    _check_names(runs, benchmark, mode, profile)
    placed = [run for run in runs if (run.config.benchmark, run.config.mode) == (benchmark, mode)]
    candidates = [relabelled for run in placed if (relabelled := _under(run, profile))]
    if not candidates:
        command = run_command(methods or ["er"], (benchmark, mode, profile), runs)
        places = sorted({", ".join(_place(run.config)) for run in runs}) or ["none at all"]
        raise UserError(
            f"no runs of {benchmark}, {mode}, {profile}: train them with `{command}` "
            f"(there are {'; '.join(places)})"
        )
    if methods:
        names = [canonical(method, benchmark, profile) for method in methods]
        _check_methods(names, candidates, (benchmark, mode, profile))
        candidates = [run for run in candidates if run.config.method in names]
    for name, value in narrowers.items():
        if value is not None:
            candidates = _narrowed(candidates, name, value)
    return candidates


def of_methods(*methods: str) -> Pick:
    """Return a function that picks the runs of these methods."""

    def wanted(config: Config) -> bool:
        texts = [canonical(method, config.benchmark, config.profile) for method in methods]
        return config.method in texts

    return lambda runs: [run for run in runs if wanted(run.config)]


def method_groups(runs: Sequence[Run]) -> list[Group]:
    """Return a group per method, by objective with the plain one first.

    Of runs that differ only in their length or in how they were evaluated, the fullest are taken.
    """
    if not runs:
        raise UserError("a figure needs at least one run")
    runs = one_start_per_seed(runs)
    _check_alike(runs, ("benchmark", "mode", "profile"), "the runs")
    # The optimiser comes first, since its own learning rate and momentum follow from it.
    own_names = own_settings(run.config for run in runs)
    known = ("optimizer", *runs[0].config.decisive(), "plugins", *own_names)
    decisive = [name for name in known if name not in ("seed", "settings", *SMALLER)]
    methods: dict[str, list[Group]] = {}
    for group in sorted(groups(runs), key=preference):
        methods.setdefault(group.config.method, []).append(group)
    for method, members in methods.items():
        _check_alike([group.runs[0] for group in members], decisive, f"{method}'s runs")
    chosen = [members[0] for members in methods.values()]
    return sorted(chosen, key=lambda each: (each.objective, each.routines != "sgd", each.routines))


def run_command(methods: Sequence[str], place: tuple[str, str, str], runs: Iterable[Run]) -> str:
    """Return the command that trains these methods with five seeds.

    place: benchmark, mode and profile.
    runs: finished ones. The plugins that all of them on this benchmark needed may define it.
    """
    benchmark, mode, profile = place
    words = ["twofold", "run", benchmark, *methods, "--seeds", "5"]
    words += ["--mode", mode] if mode != "offline" else []
    words += ["--profile", profile] if profile != profiles.DEFAULT else []
    each = [run.config.plugins for run in runs if run.config.benchmark == benchmark]
    common = [plugin for plugin in each[0] if all(plugin in own for own in each)] if each else []
    for plugin in common:
        words += ["--plugin", plugin]
    return shlex.join(words)


def _under(run: Run, profile: str) -> Run | None:
    """Return the run with a profile's label; None if the profile would configure it differently."""
    config = run.config
    if config.profile == profile:
        return run
    (objective, options), *terms = config.what
    try:
        method = Method(
            (Objective.find(objective), options),
            tuple((Routine.find(name), given) for name, given in config.how),
            tuple((Addition.find(name), given) for name, given in terms),
        )
    except UserError:  # a component that is not available here
        return None
    defaults = profiles.find(profile, config.benchmark, method)
    general = [each for each in profiles.departures().values() if not each.components]
    settings = {each.option: each.text for each in general} | defaults.settings
    if any(getattr(config, name) != value for name, value in settings.items()):
        return None
    relabelled = dataclasses.replace(
        config, profile=profile, method=method.text(defaults.components)
    )
    return dataclasses.replace(run, config=relabelled)


def _check_names(runs: Sequence[Run], benchmark: str, mode: str, profile: str) -> None:
    benchmarks = {*Recipe.known, *(run.config.benchmark for run in runs)}
    names: list[tuple[str, str, Iterable[str]]] = [
        ("benchmark", benchmark, benchmarks),
        ("mode", mode, get_args(Mode)),
        ("profile", profile, profiles.names()),
    ]
    for kind, name, known in names:
        if name not in known:
            raise unknown(kind, name, known)


def _check_methods(
    methods: Iterable[str], runs: Sequence[Run], place: tuple[str, str, str]
) -> None:
    known = {run.config.method for run in runs}
    missing = [method for method in methods if method not in known]
    for method in missing:
        if not can_be_run(method):
            raise unknown("method", method, known)
    if missing:
        command = run_command(missing, place, runs)
        raise UserError(f"no runs of {', '.join(missing)}: train them with `{command}`")


def can_be_run(method: str) -> bool:
    """Return whether a text is a method whose components are available here."""
    try:
        Method.parse(method)
    except UserError:
        return False
    return True


def _narrowed(runs: Sequence[Run], name: str, value: Any) -> list[Run]:
    values = {_value(run, name) for run in runs}
    if value not in values:
        raise UserError(f"no runs with {_words(name)} {value}: there are {_listed(values)}")
    return [run for run in runs if _value(run, name) == value]


def _check_alike(runs: Sequence[Run], names: Iterable[str], whose: str) -> None:
    for name in names:
        values = {_value(run, name) for run in runs}
        if len(values) > 1:
            option = f"choose one with the option {name}"
            way = "put them in separate folders"
            if name in (*NARROWERS, "mode", "profile"):
                way = option
            elif any(name in run.config.settings for run in runs):
                way = f"choose one with the option set, {name}=..."
            raise UserError(f"{whose} differ in {_words(name)} ({_listed(values)}): {way}")


def _place(config: Config) -> tuple[str, str, str]:
    return config.benchmark, config.mode, config.profile


def _value(run: Run, name: str) -> Any:
    if name == "iterations":  # of a task; the configuration only knows a limit
        return int((run.columns["task"] == 1).sum())
    value = run.config.value(name)
    return str(value) if isinstance(value, list) else value


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(values: Iterable[Any]) -> str:
    order = sorted(values, key=lambda value: (value is None, isinstance(value, str), value))
    return ", ".join(map(str, order))
