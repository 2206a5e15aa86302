"""The configuration of a run: all that decides its result, checked before anything starts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import operator
import re
import shlex
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch

from twofold.benchmarks import Benchmark, Recipe
from twofold.benchmarks.base import Whitening
from twofold.discovery import changed_since_import, import_file, module_of, plugin_digest
from twofold.errors import UserError, unknown
from twofold.evaluation.continual import Precision
from twofold.evaluation.schedule import Schedule
from twofold.experiments import profiles
from twofold.memory import Grouping
from twofold.method import Method, check_method
from twofold.objectives import Objective
from twofold.routines import Routine
from twofold.routines.momentum_reset import MomentumReset
from twofold.training import Settings

Mode = Literal["offline", "online"]
SEED = 142  # the paper's first
LARGEST_SEED = 2**32 - 1  # the generator of the authors' divisions takes no larger one
LARGEST_LR = 1e30  # beyond, a step could not even be written in single precision
LONGEST_NAME = 200  # of a folder, before the identity; file systems take 255


def paper_seeds(count: int) -> list[int]:
    """The paper's five seeds are 142, 152, 162, 172, 182; further ones go on in steps of ten."""
    return [SEED + 10 * k for k in range(count)]


@dataclass(frozen=True)
class Config:
    """One run, complete. Make it with `configure`, which fills in and checks."""

    benchmark: str
    method: str
    mode: Mode
    lr: float
    batch_size: int
    seed: int
    profile: str
    iterations: int | None
    tasks: int | None
    eval_every: int
    eval_size: int
    memory_per_class: int
    memory_grouping: Grouping
    whitening: Whitening
    momentum: float
    reset_momentum: bool
    device: str
    components: list[tuple[str, dict[str, Any]]]  # objective, routines: all options, as in force
    plugins: list[str]  # files of the user's own that have a part in it
    eval_schedule: str = "every"
    eval_precision: Precision = "fp32"
    own: str = ""  # the digest of a benchmark of the user's own tensors

    def make_components(self) -> tuple[Objective, list[Routine]]:
        (objective, options), *rest = self.components
        routines = [Routine.find(name).make(options) for name, options in rest]
        chain = _chain(routines, self.momentum, self.reset_momentum)
        return Objective.find(objective).make(options), chain

    def settings(self) -> Settings:
        values = dataclasses.asdict(self)
        taken = {f.name: values[f.name] for f in dataclasses.fields(Settings) if f.name in values}
        return Settings(online=self.mode == "online", **taken)

    def identity(self) -> str:
        """A short digest of what decides the result."""
        decisive = dataclasses.asdict(self)
        for name in ("method", "profile"):  # said in full by the components and the rest
            del decisive[name]
        del decisive["device"]  # a study may move to other machines
        for field in dataclasses.fields(self):
            # Younger than the first runs, which are to keep their identities.
            if field.default is not MISSING and decisive[field.name] == field.default:
                del decisive[field.name]
        decisive["plugins"] = self.plugin_digests()
        text = json.dumps(decisive, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def plugin_digests(self) -> list[str]:
        """Of the plugins' texts: a component that was changed makes other runs."""
        return [plugin_digest(plugin) for plugin in self.plugins]

    def command(self, seeds: Sequence[int] | None = None) -> str | None:
        """Return the command that trains this run, or the same with each of these seeds.

        It is None for a benchmark made of a user's own tensors.
        """
        if self.own or self.benchmark not in Recipe.known:
            return None
        usual = configure(
            self.benchmark, self.method, mode=self.mode, seed=self.seed, profile=self.profile
        )
        words = ["twofold", "run", self.benchmark, self.method]
        words += ["--mode", self.mode, *_seed_words(self.seed, seeds), "--profile", self.profile]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("components", "plugins") or value == getattr(usual, field.name):
                continue
            words.append("--" + field.name.replace("_", "-"))
            words += [] if value is True else [str(value)]
        for plugin in self.plugins:
            words += ["--plugin", plugin]
        return shlex.join(words)

    def folder_name(self) -> str:
        name = f"{self.benchmark}-{self.mode}-{self.method}-{self.profile}-{self.seed}"
        plain = re.sub(r"^\.|[^A-Za-z0-9+=.,()-]", "_", name)
        return f"{plain[:LONGEST_NAME]}-{self.identity()}"


def _seed_words(seed: int, seeds: Sequence[int] | None) -> list[str]:
    if seeds is None:
        return ["--seed", str(seed)]
    if list(seeds) == paper_seeds(len(seeds)):
        return ["--seeds", str(len(seeds))]
    return ["--seed", ",".join(map(str, seeds))]


def configure(
    benchmark: str | Benchmark,
    method: str,
    *,
    mode: str = "offline",
    lr: float | None = None,
    batch_size: int | None = None,
    seed: int = SEED,
    profile: str = "paper",
    iterations: int | None = None,
    tasks: int | None = None,
    eval_every: int = 1,
    eval_schedule: str = "every",
    eval_size: int = 1000,
    eval_precision: Precision = "fp32",
    memory_per_class: int = 100,
    memory_grouping: Grouping | None = None,
    whitening: Whitening | None = None,
    momentum: float = 0.9,
    reset_momentum: bool = False,
    device: str = "cpu",
    plugins: Sequence[str] = (),
) -> Config:
    """A checked configuration. What is not given is the paper's tables', or the profile's."""
    for plugin in plugins:
        import_file(plugin)
        if changed_since_import(plugin):
            raise UserError(
                f"plugin {plugin!r} was changed after it was imported: start Python anew"
            )
    recipe = benchmark if isinstance(benchmark, Benchmark) else Recipe.find(benchmark)
    parsed = Method.parse(method)
    if mode not in get_args(Mode):
        raise unknown("mode", mode, get_args(Mode))
    defaults = profiles.find(profile, recipe.name, parsed)
    if lr is None:
        tuned = getattr(recipe, "offline_lr", {})
        lr = tuned.get(parsed.objective[0].name, 0.1) if mode == "offline" else 0.01
    if batch_size is None:
        online = getattr(recipe, "online_batch_size", 10)
        batch_size = 128 if mode == "offline" else online
    if not 0 < lr <= LARGEST_LR:
        raise UserError(f"learning rate must be above 0 and at most {LARGEST_LR:g}, not {lr:g}")
    if not 0 <= momentum < 1:
        raise UserError(f"momentum must be at least 0 and below 1, not {momentum}")
    batch_size = _whole("batch size", batch_size)
    iterations = None if iterations is None else _whole("iterations", iterations)
    tasks = None if tasks is None else _whole("tasks", tasks)
    eval_every, eval_size = _whole("eval every", eval_every), _whole("eval size", eval_size)
    seed = _whole("seed", seed, 0)
    memory_per_class = _whole("memory per class", memory_per_class, 0)
    if seed > LARGEST_SEED:
        raise UserError(f"seed must be at most {LARGEST_SEED}, not {seed}")
    available = recipe.tasks if isinstance(recipe.tasks, int) else len(recipe.tasks)
    if tasks is not None and tasks > available:
        raise UserError(f"{recipe.name} has {available} tasks, not {tasks}")
    if tasks == available:  # said or not said, it is the same run
        tasks = None
    if mode == "offline" and iterations is not None and iterations >= recipe.offline_iterations:
        iterations = None
    for name, value, choices in (
        ("memory grouping", memory_grouping, get_args(Grouping)),
        ("whitening", whitening, get_args(Whitening)),
        ("eval precision", eval_precision, get_args(Precision)),
    ):
        if value is not None and value not in choices:
            raise unknown(name, str(value), choices)
    _check_device(device)
    objective, routines = parsed.make(defaults.components)
    chain = _chain(routines, momentum, reset_momentum)
    check_method(objective, chain, recipe.scenario, memory_per_class, momentum)
    return Config(
        benchmark=recipe.name,
        method=parsed.text(defaults.components),
        mode="online" if mode == "online" else "offline",
        lr=float(lr),
        batch_size=batch_size,
        seed=seed,
        profile=profile,
        iterations=iterations,
        tasks=tasks,
        eval_every=eval_every,
        eval_size=eval_size,
        memory_per_class=memory_per_class,
        memory_grouping=memory_grouping or defaults.settings.get("memory_grouping", "class-task"),
        whitening=whitening or defaults.settings.get("whitening", "train"),
        momentum=float(momentum),
        reset_momentum=reset_momentum,
        device=device,
        components=[(part.name, part.explicit()) for part in (objective, *routines)],
        plugins=_needed(plugins, recipe, parsed),
        eval_schedule=Schedule.parse(eval_schedule, eval_every).text,
        eval_precision=eval_precision,
        own=_digest(benchmark) if isinstance(benchmark, Benchmark) else "",
    )


def _chain(routines: list[Routine], momentum: float, reset_momentum: bool) -> list[Routine]:
    """With the routine that `reset_momentum`, which is older, is another way to ask for."""
    return [*routines, MomentumReset()] if reset_momentum and momentum else routines


def _needed(plugins: Sequence[str], recipe: Benchmark | type[Recipe], method: Method) -> list[str]:
    """Those that define a part of this run; and those that define none of any, but may do more."""
    parts: list[type] = [recipe if isinstance(recipe, type) else type(recipe)]
    parts += [part for part, _ in (method.objective, *method.routines)]
    used = {base.__module__ for part in parts for base in part.__mro__}
    known = (*Recipe.known.values(), *Objective.known.values(), *Routine.known.values())
    defining = {part.__module__ for part in known}
    return [p for p in plugins if module_of(p) in used or module_of(p) not in defining]


def _digest(benchmark: Benchmark) -> str:
    """Of all that decides a result: data, tasks, and the network as it describes itself."""
    digest = hashlib.sha256()
    for pool in (benchmark.train, benchmark.test):
        for tensor in (pool.images, pool.labels):
            digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(np.ascontiguousarray(tensor.numpy(force=True)).data)
    for task in benchmark.tasks:
        digest.update(task.train.tobytes() + task.test.tobytes())
    with torch.random.fork_rng(devices=[]):  # its weights are not what is looked at
        network = repr(benchmark.model())
    digest.update(f"{benchmark.offline_iterations} {network}".encode())
    return digest.hexdigest()[:10]


def _whole(name: str, value: Any, least: int = 1) -> int:
    try:
        whole = operator.index(value)
    except TypeError:
        raise UserError(f"{name} must be a whole number, not {value!r}") from None
    if whole < least:
        raise UserError(f"{name} must be at least {least}, not {whole}")
    return whole


def _check_device(device: str) -> None:
    kinds = [kind for kind in ("cuda", "mps") if getattr(torch, kind).is_available()]
    try:
        if torch.device(device).type in ("cpu", *kinds):
            torch.empty(0, device=device)  # there may be a GPU, but not this one
            return
    except (RuntimeError, AssertionError):
        pass
    raise UserError(f"no device {device!r} here: there is {' and '.join(['cpu', *kinds])}")
