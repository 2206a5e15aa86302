"""The configuration of a run: all that decides its result, checked before training."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from twofold import optimizers
from twofold.benchmarks import Benchmark, Recipe
from twofold.benchmarks.scenarios import requested
from twofold.boundaries import check_boundaries
from twofold.compatibility import check_method
from twofold.component import Component, plain
from twofold.discovery import changed_since_import, import_file, module_of, plugin_digest
from twofold.errors import UserError
from twofold.experiments import profiles
from twofold.experiments.digests import benchmark_digest, code_of
from twofold.experiments.options import Options, Request, What
from twofold.experiments.settling import settled
from twofold.experiments.start import PER_SEED, Start
from twofold.memories import Memory
from twofold.memories.reading import described, memory_of, quotas
from twofold.memories.reading import read as read_memory
from twofold.method import Method
from twofold.objectives import Objective
from twofold.options import Option, given_options, keywords_of, option, options
from twofold.own_modules import imported
from twofold.routines import Routine
from twofold.settings import SEED, Settings
from twofold.terms import Addition

LONGEST_NAME = 200  # of a folder, before the identity; file systems take 255
UNSTATED: dict[str, Any] = {"lr": 0.0, "batch_size": 0}  # of a loop that is not twofold's
QUOTA = ("memory_per_class", "memory_grouping")  # which the value of `memory` includes
WHAT = tuple(options(What))  # the options that have no default


def usual_seeds(count: int) -> list[int]:
    """Return the first seeds: 142, 152, 162, and so on in steps of ten."""
    return [SEED + 10 * k for k in range(count)]


@dataclass(frozen=True, kw_only=True)
class Config(Request):
    """One run, complete. Use `configure`, which fills in what is not given and checks it."""

    components: list[tuple[str, dict[str, Any]]]  # objective, terms, routines: options in force
    own: str = option("", help="digest of your own tensors", label="data", flag=None)
    start_digest: str = option("", help="digest of initial weights", label="start", flag=None)
    digests: list[str] = option(
        [], help="digests of your own code and data, beside the plugins", role="place", flag=None
    )
    # Settings of a loop that is not twofold's, by the names that its user gives them.
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def value(self, name: str) -> Any:
        """Return an option or one of the user's own settings; None for a setting it lacks.

        The memory is its text, whichever options describe it.
        """
        if name == "memory":
            return described(self)
        return self.settings[name] if name in self.settings else getattr(self, name, None)

    @classmethod
    def stored(cls, entries: Mapping[str, Any]) -> Config:
        """Return the configuration that a file describes; options that came later are default."""
        known = dict(entries)
        every = known.pop("eval_every", 1)  # the older form of `every:10`
        if every != 1:
            known["eval_schedule"] = f"every:{every}"
        known["components"] = [(name, dict(values)) for name, values in known["components"]]
        if known.pop("reset_momentum", False):  # the older form of the routine
            known["components"].append(("momentum-reset", {}))
            known["method"] += "+momentum-reset"
        return cls(**known)

    def make_components(self) -> tuple[Objective, list[Routine]]:
        """Return fresh components."""
        (name, given), *terms = self.what
        objective = Objective.find(name).make(given)
        objective.terms = [Addition.find(term).make(own) for term, own in terms]
        return objective, [Routine.find(name).make(own) for name, own in self.how]

    @property
    def what(self) -> list[tuple[str, dict[str, Any]]]:
        """The objective, and the terms that are added to it."""
        return [self.components[0], *(each for each in self.components[1:] if _is_term(each[0]))]

    @property
    def how(self) -> list[tuple[str, dict[str, Any]]]:
        """The routines."""
        return [each for each in self.components[1:] if not _is_term(each[0])]

    def decisive(self) -> dict[str, Any]:
        """Return all that decides the result, except for the plugins' texts."""
        results = [name for name, each in options(Config).items() if each.role == "result"]
        decisive = {name: getattr(self, name) for name in (*results, "components")}
        return decisive | ({"settings": self.settings} if self.settings else {})

    def identity(self, brought: Sequence[str] | None = None) -> str:
        """Return a short digest of what decides the result.

        Options with their default value are left out, so that a new option changes no identity.

        brought: digests of all that the user brought to a run (default: as it is here).
        """
        defaults = {name: each.default for name, each in options(Config).items()}
        texts = self.brought() if brought is None else list(brought)
        decisive = self.decisive() | {"plugins": texts}
        parts = {
            name: v for name, v in decisive.items() if name not in defaults or v != defaults[name]
        }
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def brought(self) -> list[str]:
        """Return digests of the plugins' texts, and of the user's other code and data.

        A changed component makes a different run.
        """
        return [*map(plugin_digest, self.plugins), *self.digests]

    def command(self, seeds: Sequence[int] | None = None) -> str | None:
        """Return the command for this run, or for the same with several seeds.

        None for a benchmark of a user's own tensors, which no command can name, for seeds with
        starts of their own, and for a component that neither this process nor a plugin has.
        """
        given: Any = {"mode": self.mode, "seed": self.seed, "profile": self.profile}
        nameless = self.own or self.start_from == PER_SEED
        defaults = None if nameless else self._usual(given)
        if defaults is None:
            return None
        words = ["twofold", "run", self.benchmark, self.method]
        for name, each in options(Config).items():
            value = getattr(self, name)
            if each.flag is None:
                continue
            if name == "seed":
                words += _seed_words(seeds or [self.seed])
            elif each.several:
                words += [word for one in value for word in (each.flag_text, str(one))]
            elif name in given or (name not in WHAT and value != getattr(defaults, name)):
                words += [each.flag_text, *([] if value is True else [str(value)])]
        return shlex.join(words)

    def _usual(self, given: Mapping[str, Any]) -> Config | Options | None:
        """Return what the command leaves out: the defaults of this benchmark and method."""
        try:
            return configure(self.benchmark, self.method, **given)
        except UserError:  # a component of a plugin that is not loaded here
            return Options() if self.plugins else None

    def folder_name(self, brought: Sequence[str] | None = None) -> str:
        """Return the name of the run's folder in a store: a short description and the identity."""
        name = f"{self.benchmark}-{self.mode}-{self.method}-{self.profile}-{self.seed}"
        plain = re.sub(r"^\.|[^A-Za-z0-9+=.,()-]", "_", name)
        return f"{plain[:LONGEST_NAME]}-{self.identity(brought)}"


def _is_term(name: str) -> bool:
    return Addition.knows(name)


def _seed_words(seeds: Sequence[int]) -> list[str]:
    if len(seeds) > 1 and list(seeds) == usual_seeds(len(seeds)):
        return ["--seeds", str(len(seeds))]
    return ["--seed", ",".join(map(str, seeds))]


def varying(configs: Sequence[Config], apart: Iterable[str] = ()) -> list[Option]:
    """Return the options in which configurations differ, except for `apart` and for places.

    The users' own settings are among them. The memory is one of them, whichever options it has.
    """
    return [
        each
        for name, each in (options(Config) | own_settings(configs)).items()
        if each.role != "place" and name not in (*apart, *QUOTA)
        if len({str(config.value(name)) for config in configs}) > 1
    ]


def setting_words(config: Config, shown: Iterable[Option]) -> list[str]:
    """Return `online` or `lr 0.01` for each of these options that has a value.

    The texts that name a run, such as its benchmark and mode, need no label.
    """
    values = [(each, config.value(each.name)) for each in shown]
    return [
        value if each.axis and isinstance(value, str) else f"{each.column} {_short(value)}"
        for each, value in values
        if value is not None and value != ""
    ]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else plain(value)


def option_names() -> list[str]:
    """Return the names of all options of a run."""
    return list(options(Config))


def option_value(config: Config, name: str) -> object:
    """Return the value of an option as a table shows it."""
    value = config.value(name)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def option_values(config: Config, names: Iterable[str]) -> dict[str, object]:
    return {name: option_value(config, name) for name in names}


def headings(names: Iterable[str]) -> list[str]:
    """Return the headings of options."""
    return [options(Config)[name].column for name in names]


def own_settings(configs: Iterable[Config]) -> dict[str, Option]:
    """Return the users' own settings in configurations as options, by name."""
    names = dict.fromkeys(name for config in configs for name in config.settings)
    return {name: Option("a setting of your own", name=name, hint=Any) for name in names}


@keywords_of(Options).after_two
def configure(benchmark: str | Benchmark, method: str | Method | Component, **given: Any) -> Config:
    """Return a checked configuration; its keywords are the options of a run.

    What is not given is the profile's, or else the default of the benchmark and the objective.
    The data of a user's own recipe become part of the identity when their folder is known: `run`
    and `run_all` add them.
    """
    chosen = given_options(Options, given)
    plugins = _imported(chosen.pop("plugins", []))
    recipe = _found(benchmark)
    parsed = Method.read(method)
    settings = {name: each.default for name, each in options(Options).items()} | chosen
    objective, _ = parsed.make()
    defaults = profiles.find(settings["profile"], recipe.name, parsed, recipe.augmentation)
    settings |= recipe.defaults(settings["mode"], objective.name, objective.lr)
    settings |= defaults.settings
    settings |= _optimizer_settings(settings | chosen, chosen)
    settings |= _memory_settings(settings, chosen, objective)
    start = Start.read(settings["start_from"])
    memory = memory_of(Settings(**{name: settings[name] for name in options(Settings)}))
    needed = _needed(plugins, recipe, parsed, memory)
    settings |= {"plugins": needed, "start_from": start.name}
    objective, routines = parsed.make(defaults.components)
    parts = (objective, *objective.terms, *routines, memory)
    digests = code_of(recipe, [type(part) for part in parts], needed)
    config = Config(
        benchmark=recipe.name,
        method=parsed.text(defaults.components),
        components=[
            (part.name, part.explicit()) for part in (objective, *objective.terms, *routines)
        ],
        own=own_benchmarks.add(benchmark) if isinstance(benchmark, Benchmark) else "",
        start_digest=start.digest,
        digests=digests,
        **settings,
    )
    return _checked(config, recipe)


def _optimizer_settings(settings: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Return all that was chosen, with learning rate and momentum from the optimiser's text."""
    choice = optimizers.read(settings["optimizer"])
    known = options(Settings)
    defaults = {name: known[name].value(value) for name, value in choice.usual().items()}
    for name, key in (("lr", "lr"), ("momentum", choice.momentum_name)):
        if key in choice.given and chosen.get(name, defaults[name]) != defaults[name]:
            raise UserError(
                f"the {name} is set twice: {defaults[name]:g} in {settings['optimizer']!r}, and "
                f"{chosen[name]:g}"
            )
    merged = defaults | chosen | {"optimizer": str(choice.settled())}
    choice.check_momentum((settings | merged)["momentum"])
    return merged


def _memory_settings(
    settings: dict[str, Any], chosen: dict[str, Any], objective: Objective
) -> dict[str, Any]:
    """Return the options of the memory, in one form for one memory.

    The paper's memory is described by its quota and grouping, as it was before there were others.
    """
    known = options(Options)
    usual = {name: known[name].default for name in ("memory_per_class", "memory_grouping")}
    given = settings["memory"]
    if not given and not objective.needs_current:
        return {}
    if given:
        for name, default in usual.items():
            if chosen.get(name, default) != default:
                raise UserError(
                    f"the memory is set twice: {given!r}, and {known[name].words} {chosen[name]}"
                )
        memory = read_memory(given)
    else:
        own = {name: settings[name] for name in usual}
        memory = memory_of(Settings(**own))
        memory = dataclasses.replace(memory, current=True)
    return (
        {"memory": "", **same} if (same := quotas(memory)) else {"memory": memory.text(), **usual}
    )


def _imported(plugins: Sequence[str]) -> list[str]:
    for plugin in plugins:
        import_file(plugin)
        if changed_since_import(plugin):
            raise UserError(f"plugin {plugin!r} was changed after it was imported: restart Python")
    return [str(plugin) for plugin in plugins]


def _found(benchmark: str | Benchmark) -> Benchmark | type[Recipe]:
    if isinstance(benchmark, Benchmark):
        return benchmark
    if not isinstance(benchmark, str):
        raise UserError(f"a benchmark is a name or a Benchmark, not {benchmark!r}"[:100])
    return Recipe.find(benchmark)


def _checked(config: Config, recipe: Benchmark | type[Recipe]) -> Config:
    """Check combinations of options, and replace equivalent values by one form."""
    available = recipe.tasks if isinstance(recipe.tasks, int) else len(recipe.tasks)
    course = settled(config, recipe.name, available, recipe.offline_iterations)
    _check_device(config.device)
    objective, routines = config.make_components()
    memory = memory_of(config)
    scenario = requested(config.scenario, recipe)
    if scenario == "task" and not config.task_ids:
        raise UserError("scenario task needs the task of every example: leave task-free out")
    own_scenario = "domain" if config.parts else recipe.scenario
    check_method(objective, routines, scenario or own_scenario, memory, config.momentum)
    check_boundaries(objective, routines, memory, config, config.sequence(available))
    return dataclasses.replace(
        config, **course, scenario=scenario, eval_schedule=config.schedule.text
    )


def _needed(
    plugins: Sequence[str], recipe: Benchmark | type[Recipe], method: Method, memory: Memory
) -> list[str]:
    """Return the plugins that define a component of this run, and those that define none.

    A plugin that defines no component may have side effects.
    """
    parts: list[type] = [recipe if isinstance(recipe, type) else type(recipe), type(memory)]
    parts += [part for part, _ in (method.objective, *method.terms, *method.routines)]
    used = {base.__module__ for part in parts for base in part.__mro__}
    kinds: list[Any] = [Recipe, *Component.kinds.values()]
    defining = {part.__module__ for each in kinds for part in each.known.values()}
    modules = {plugin: {module_of(plugin), *imported(Path(plugin))} for plugin in plugins}
    return [p for p in plugins if modules[p] & used or module_of(p) not in defining]


class OwnBenchmarks:
    """The benchmarks of a user's own tensors in this process, by the digest of what they hold."""

    def __init__(self) -> None:
        self._known: dict[str, Benchmark] = {}

    def add(self, benchmark: Benchmark) -> str:
        digest = benchmark_digest(benchmark)
        self._known[digest] = benchmark
        return digest

    def find(self, config: Config) -> Benchmark:
        if config.own not in self._known:
            raise UserError(f"the tensors of {config.benchmark!r} are not in this process")
        return self._known[config.own]


own_benchmarks = OwnBenchmarks()


def _check_device(device: str) -> None:
    kinds = [kind for kind in ("cuda", "mps") if getattr(torch, kind).is_available()]
    try:
        if torch.device(device).type in ("cpu", *kinds):
            torch.empty(0, device=device)  # there may be a GPU, but not this one
            return
    except (RuntimeError, AssertionError):
        pass
    raise UserError(f"no device {device!r} here: there is {' and '.join(['cpu', *kinds])}")
