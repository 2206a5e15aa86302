"""Selection: which runs belong where in tables, verdicts and figures.

Runs are known by what they are, not by what they are called: a run belongs to a profile if the
profile would have configured it in the same way, whatever its label says.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from twofold.benchmarks import Recipe
from twofold.choices import Mode
from twofold.compare.groups import Group, groups
from twofold.compare.reductions import Reductions, changed_plugins
from twofold.compare.starts import one_start_per_seed
from twofold.errors import UserError, unknown
from twofold.experiments import profiles
from twofold.experiments.config import Config, configure, own_settings
from twofold.experiments.naming import canonical
from twofold.experiments.runs import Run
from twofold.method import Method
from twofold.objectives import Objective
from twofold.options import options
from twofold.routines import Routine
from twofold.statistics import mean_and_error
from twofold.terms import Addition
from twofold.text import stated

SMALLER = tuple(name for name, each in options(Config).items() if each.reduces)
# Settings that `select_runs` can choose by.
NARROWERS = ("optimizer", "lr", "batch_size", "iterations")

Pick = Callable[[Sequence[Run]], list[Run]]


class Setting(NamedTuple):
    """The tuned hyperparameters."""

    lr: float
    batch_size: int

    @classmethod
    def of(cls, config: Config) -> Setting:
        return cls(config.lr, config.batch_size)

    def __str__(self) -> str:
        return f"LR {stated(self.lr)}, BS {stated(self.batch_size)}"

    @property
    def order(self) -> tuple[int, float]:
        """For sorting: by batch size, with the highest learning rate first."""
        return self.batch_size, -self.lr


def essence(config: Config, apart: Iterable[str] = (*Setting._fields, *SMALLER)) -> str:
    """Return all that decides a run's result, except for its seed and these fields."""
    decisive = config.decisive() | {"plugins": config.plugins}
    kept = {name: value for name, value in decisive.items() if name not in {"seed", *apart}}
    return json.dumps(kept, sort_keys=True)


def preference(group: Group) -> tuple[object, ...]:
    """For sorting: full runs first, then those nearest to them, then those with more seeds."""
    return *training_preference(group), *evaluation_preference(group), -len(group.runs)


def training_preference(group: Group) -> tuple[object, ...]:
    """For sorting: runs trained in full first, then those nearest to them."""
    config = group.config
    size = (-(config.iterations or math.inf), -(config.tasks or math.inf))
    shortened = bool(Reductions.of(group).training)
    return bool(changed_plugins(group.runs[0])), shortened, *(size if shortened else ())


def evaluation_preference(group: Group) -> tuple[object, ...]:
    """For sorting: runs evaluated in full first, then those nearest to them."""
    reductions = Reductions.of(group)
    thinned = (not group.complete, not group.knows_min)
    return *thinned, bool(reductions.images), bool(reductions.precision)


class Shelf:
    """Groups by what they are. Runs that are alike form a group, whatever their profile's name.

    Seeds that were evaluated in fp32 and in bf16 form a group, too, unless audits found
    differences. A seed that was evaluated in both counts in fp32.

    curves: whether numbers are needed that follow from whole curves only. If not, seeds of all
        schedules that know MIN exactly form a group.
    """

    def __init__(self, found: Iterable[Group], curves: bool = True) -> None:
        by_seed: dict[str, dict[int, Run]] = {}
        for group in found:
            ignored = [] if Reductions.of(group).precision else ["eval_precision"]
            if not curves and group.knows_min and not group.replaces_evaluated:
                ignored.append("eval_schedule")
            for run in group.runs:
                runs_by_seed = by_seed.setdefault(
                    f"{essence(run.config, ignored)} {run.plugins}", {}
                )
                if run.config.seed not in runs_by_seed or run.config.eval_precision == "fp32":
                    runs_by_seed[run.config.seed] = run
        self._groups: dict[str, list[Group]] = {}
        for seeds in by_seed.values():
            group = Group(tuple(seeds[seed] for seed in sorted(seeds)))
            self._groups.setdefault(essence(group.config), []).append(group)

    def groups(self) -> list[Group]:
        return [group for by_setting in self._groups.values() for group in by_setting]

    def find(self, config: Config) -> dict[Setting, Group]:
        """Return the groups of a method by learning rate and batch size.

        Of several groups in one setting, those as small as `config` come first, then full ones.
        """
        names = [name for name in SMALLER if name != "eval_precision"]  # which `preference` weighs

        def order(group: Group) -> tuple[object, ...]:
            pairs = ((getattr(group.config, name), getattr(config, name)) for name in names)
            return any(one != other for one, other in pairs), *preference(group)

        by_setting: dict[Setting, Group] = {}
        for group in sorted(self._groups.get(essence(config), ()), key=order):
            by_setting.setdefault(Setting.of(group.config), group)
        return by_setting


# One setting of several


Found = Mapping[str, Mapping[Setting, Group]]  # by method and setting


class Choice(NamedTuple):
    """A setting, and why it was chosen."""

    setting: Setting
    why: str


def choose(found: Found, plain: Sequence[str], usual: Setting) -> Choice | None:
    """Choose the setting in which the plain methods end highest; None if there are no runs.

    It is one setting for all methods. Of those that have the most plain methods, it is the one with
    the highest mean of their final accuracies. Without any plain method it is the usual setting,
    or the one with the most runs.
    """
    settings = sorted({setting for by_setting in found.values() for setting in by_setting})
    if not settings:
        return None
    finals = _finals(found, plain)
    if len(settings) == 1:
        choice = Choice(settings[0], "the only ones with runs")
    elif finals:
        choice = _highest(finals, plain)
    elif usual in settings:
        return Choice(usual, "the usual ones")
    else:
        count = {
            s: sum(len(by_setting[s].runs) for by_setting in found.values() if s in by_setting)
            for s in settings
        }
        choice = Choice(max(settings, key=lambda s: count[s]), "those with the most runs")
    if choice.setting != usual:
        choice = choice._replace(why=f"{choice.why} (usually {usual})")
    return choice


def _finals(found: Found, plain: Sequence[str]) -> dict[Setting, dict[str, float]]:
    """Return final accuracies by setting and plain method, of shortened runs only if all are."""
    candidates = [
        (method, s, group) for method in plain for s, group in found.get(method, {}).items()
    ]
    full = [each for each in candidates if not Reductions.of(each[2]).training]
    finals: dict[Setting, dict[str, float]] = {}
    for method, setting, group in full or candidates:
        finals.setdefault(setting, {})[method] = mean_and_error(group.values("avg"))[0]
    return finals


def _highest(finals: Mapping[Setting, Mapping[str, float]], plain: Sequence[str]) -> Choice:
    most = max(map(len, finals.values()))
    rivals = {
        s: mean_and_error(values.values())[0] for s, values in finals.items() if len(values) == most
    }
    best = max(rivals, key=lambda s: (rivals[s], s))
    methods = [method for method in plain if method in finals[best]]
    why = f"highest final accuracy of plain {' and '.join(methods)} among {len(rivals)} settings"
    for method in methods:
        own_best = max(finals, key=lambda s: (finals[s].get(method, -math.inf), s == best))
        if own_best != best:
            why += f"; {method} alone ends highest with {own_best}"
    return Choice(best, why)


def one_setting(runs: Sequence[Run]) -> tuple[list[Run], str]:
    """Return the runs with the setting that `choose` chooses, and why it did.

    If every method has a single setting, such as DER its own, there is nothing to choose. The
    usual setting of a user's own benchmark is not known, so there the user has to choose.
    """
    by_method: dict[str, dict[Setting, Group]] = {}
    for group in sorted(groups(runs), key=preference):
        by_method.setdefault(group.config.method, {}).setdefault(Setting.of(group.config), group)
    ambiguous = any(len(by_setting) > 1 for by_setting in by_method.values())
    if not ambiguous or runs[0].config.benchmark not in Recipe.known:
        return list(runs), ""
    plain = sorted(
        {group.objective for by_setting in by_method.values() for group in by_setting.values()}
    )
    default = configure(runs[0].config.benchmark, "er", mode=runs[0].config.mode)
    choice = choose(by_method, plain, Setting.of(default))
    if choice is None:
        return list(runs), ""
    chosen = [run for run in runs if Setting.of(run.config) == choice.setting]
    return chosen, f"{choice.setting}, {choice.why}"


# The runs of a place and of methods


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
