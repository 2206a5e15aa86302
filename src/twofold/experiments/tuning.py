"""Tuning: options of a study's methods, chosen on held-out images and with unreported seeds.

Every candidate trains the first tasks of its benchmark with a part of the training images held
out, on which it is evaluated. The candidate with the highest mean over seeds is chosen. Neither
the test images nor the seeds of the study are used.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twofold.errors import UserError, unknown
from twofold.evaluation.measures import MEASURES
from twofold.experiments.config import Config, configure
from twofold.experiments.digests import serving_identities, with_data
from twofold.experiments.options import Request
from twofold.experiments.running import as_path, run_all
from twofold.experiments.studies import MOST_RUNS, Point, Study
from twofold.experiments.tuned import Choice
from twofold.method import Method, Written
from twofold.options import Option, options
from twofold.text import counted, mean_text

FIRST_SEED = 7  # the seeds of papers are 142, 152, ...

Options = dict[str, Any]
Place = tuple[str, str, str | None]  # benchmark, mode and method; None for all methods


@dataclass(frozen=True)
class Tuning:
    """What to vary, and how candidates are compared.

    vary: values by the name of an option, such as `lr`, or of a component's, such as `gem.gamma`.
    tasks: how many of the first tasks are trained.
    validation: the share of the training images that is held out.
    metric: the measure whose highest mean is chosen.
    together: choose once for all methods of a benchmark and mode, by the mean over methods.
    """

    vary: Mapping[str, Sequence[Any]]
    seeds: Sequence[int]
    tasks: int = 2
    validation: float = 0.1
    metric: str = "avg"
    together: bool = False

    def __post_init__(self) -> None:
        if not self.vary:
            raise UserError("nothing to tune: name values, such as --vary lr=0.01,0.1")
        if not 0 < self.validation < 1:
            raise UserError(
                f"tuning holds out a share of the training images between 0 and 1, not "
                f"{self.validation:g}"
            )
        if self.metric not in MEASURES:
            raise unknown("metric", self.metric, MEASURES)
        if self.together and any("." in name for name in self.vary):
            raise UserError("options of a component are chosen per method: leave --together out")


@dataclass(frozen=True)
class Candidate:
    """One combination of the values at one place, with its runs, one per seed and method."""

    use: Options
    configs: tuple[Config, ...]

    @property
    def text(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.use.items())


def candidates(study: Study, tuning: Tuning) -> dict[Place, list[Candidate]]:
    """Return the candidates of every benchmark, mode and method of a study."""
    reported = sorted({*tuning.seeds} & {*study.seeds})
    if reported:
        raise UserError(f"seed {reported[0]} is one of the study's: tune with different seeds")
    parts = {cls.name for point in study.points for cls, _ in _written(_method(point))}
    for name in (name.partition(".")[0] for name in tuning.vary if "." in name):
        if name not in parts:
            raise unknown("component of the study", name, parts)
    _check_count(study, tuning)
    places: dict[Place, dict[str, Candidate]] = {}
    for point in study.points:
        config = point.config
        place = (config.benchmark, config.mode, None if tuning.together else config.method)
        for use in _combinations(point, tuning.vary):
            found = Candidate(use, tuple(_configs(point, use, tuning)))
            there = places.setdefault(place, {})
            known = there.get(found.text, Candidate(use, ()))  # of a different method, or grid
            runs = {each.identity(): each for each in (*known.configs, *found.configs)}
            there[found.text] = Candidate(use, tuple(runs.values()))
    return {place: list(found.values()) for place, found in places.items() if len(found) > 1}


def _check_count(study: Study, tuning: Tuning) -> None:
    """Refuse more runs than a study may have, before any of them is configured."""
    sizes = (
        [len(values) for values in _axes(_method(point), tuning.vary).values()]
        for point in study.points
    )
    runs = len(tuning.seeds) * sum(map(math.prod, sizes))
    if runs > MOST_RUNS:
        raise UserError(
            f"these are {runs:,} runs, and a tuning has at most {MOST_RUNS:,}: name fewer values"
        )


def _combinations(point: Point, vary: Mapping[str, Sequence[Any]]) -> Iterator[Options]:
    """Yield the options of each combination; a component's options become part of the method."""
    method = _method(point)
    axes = _axes(method, vary)
    for values in itertools.product(*axes.values()):
        changed, use = method, {}
        for name, value in zip(axes, values, strict=True):
            component, dot, option = name.partition(".")
            if dot:
                changed = _replacing(changed, component, option, value)
            else:
                use[name] = value
        yield use if changed is method else {"method": changed.text(), **use}


def _method(point: Point) -> Method:
    return Method.parse(point.options["method"])


def _axes(method: Method, vary: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    return {name: values for name, values in vary.items() if _applies(method, name)}


def _applies(method: Method, name: str) -> bool:
    component = name.partition(".")[0]
    return "." not in name or any(component == cls.name for cls, _ in _written(method))


def _written(method: Method) -> tuple[Written, ...]:
    return (method.objective, *method.terms, *method.routines)


def _replacing(method: Method, component: str, option: str, value: Any) -> Method:
    """Return the method with a different value of an option of its component."""

    def replaced(part: Written) -> Written:
        cls, given = part
        if cls.name != component:
            return part
        return cls, {**given, **cls.checked({option: value}, text=True)}

    objective, terms, routines = (
        tuple(map(replaced, parts))
        for parts in ((method.objective,), method.terms, method.routines)
    )
    return Method(objective[0], routines, terms)


def _configs(point: Point, use: Options, tuning: Tuning) -> Iterator[Config]:
    given = {**point.options, **use, "validation": tuning.validation}
    given["tasks"] = min(tuning.tasks, given.get("tasks") or tuning.tasks)
    benchmark, method = given.pop("benchmark"), given.pop("method")
    config = configure(benchmark, method, **given)
    return (dataclasses.replace(config, seed=seed) for seed in tuning.seeds)


def tune(study: Study, tuning: Tuning, **work: Any) -> list[Choice]:
    """Train all candidates of a study, and return the choice at each place."""
    for name in ("shard", "within"):
        if work.get(name) is not None:
            raise UserError(f"a choice needs all runs: leave --{name} out")
    places = candidates(study, tuning)
    if not places:
        raise UserError("nothing to tune: no method of the study has two values to choose from")
    configs = [c for found in places.values() for each in found for c in each.configs]
    runs = run_all(configs, **work)
    if runs.failures:
        raise UserError(f"{next(iter(runs.failures.values()))}: a candidate failed")
    by_identity = {run.config.identity(): run for run in runs}

    def values(candidate: Candidate) -> list[float | None]:
        complete = (with_data(config, as_path(work.get("data"))) for config in candidate.configs)
        found = (by_identity.keys() & serving_identities(each) for each in complete)
        return [by_identity[min(each)].measures[tuning.metric] for each in found]

    return [
        _choice(place, {each.text: (each, values(each)) for each in found}, tuning)
        for place, found in places.items()
    ]


def _choice(
    place: Place, found: Mapping[str, tuple[Candidate, list[float | None]]], tuning: Tuning
) -> Choice:
    """Return the candidate with the highest mean; the first of equal ones."""
    best, _ = max(found.values(), key=lambda each: _mean(each[1]))
    results = "; ".join(f"{text}: {mean_text(values)}" for text, (_, values) in found.items())
    seeds = f"seed{'s' * (len(tuning.seeds) > 1)} {', '.join(map(str, tuning.seeds))}"
    why = (
        f"the highest {tuning.metric} on {tuning.validation:.0%} of the training images, held out, "
        f"after {counted(tuning.tasks, 'task')}, with {seeds}: {results}"
    )
    benchmark, mode, method = place
    return Choice(benchmark, mode, best.use, why, method)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("-inf")


def read_vary(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read `lr=0.01,0.1` and `gem.gamma=0.1,0.5`; values of options are checked."""
    vary: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        words = [word.strip() for word in values.split(",")]
        if not name or not equals or not all(words):
            raise UserError(f"--vary takes a name and values, such as lr=0.01,0.1, not {text!r}")
        if "." in name:
            vary[name] = words
        else:
            option = _option(name.replace("-", "_"))
            vary[option.name] = [option.value(word, text=True) for word in words]
    return vary


def _option(name: str) -> Option:
    known = {
        each.name: each
        for each in options(Request).values()
        if each.role == "result" and each.name not in ("benchmark", "seed", "tasks", "validation")
    }
    if name not in known:
        raise unknown("option", name, known)
    return known[name]


def unreported_seeds(study: Study, count: int) -> list[int]:
    """Return seeds that the study does not report."""
    free = (seed for seed in itertools.count(FIRST_SEED, 10) if seed not in study.seeds)
    return list(itertools.islice(free, count))


def own_file(source: str) -> Path:
    """Return the file of a user's own study, which choices are written into."""
    path = Path(source)
    if not path.is_file():
        raise UserError(
            f"tuning writes its choices into a file of your own: `twofold study show {source} > "
            f"my.toml`, then `twofold study tune my.toml`"
        )
    return path
