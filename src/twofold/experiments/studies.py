"""Studies: named grids of runs, each declared in a TOML file of a paper or of your own.

    title = "..."                    # in one line; more of it in `about`
    seeds = 5                        # the first five of 142, 152, ...; or a list of seeds
    plugins = ["mine.py"]            # your own components, if any; beside this file

    [[grid]]                         # as many as you like
    benchmark = "rotated-mnist"      # one value, or a list:
    method = ["er", "er+gem"]        # the runs are all combinations
    lr = [0.1, 0.01]                 # any option of a run; what is not given is its default,
                                     # except for eval_precision, which is "auto"

    [primary]                        # the comparisons that the study is to decide, if any
    method = ["er+gem"]              # each with its objective alone, per benchmark and mode
    margin = {min = 1.0, avg = 0.5}  # points: an equivalence lies within it

`twofold study tune` adds `[[tuned]]`, the options that it chose (`experiments/tuned.py`).
Everything is checked when a study is loaded, so mistakes are reported before anything runs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from twofold import papers
from twofold.errors import UserError, unknown
from twofold.evaluation.measures import MEASURES
from twofold.experiments.config import WHAT, Config, configure, usual_seeds
from twofold.experiments.naming import name_of
from twofold.experiments.options import Request
from twofold.experiments.tuned import Choice, read_choices
from twofold.method import Method
from twofold.options import Option, options
from twofold.plainfiles import opened

MOST_SEEDS = 10_000
MOST_RUNS = 10_000
LARGEST = 2**20  # letters of a study
KEYS = ("title", "about", "seeds", "plugins", "grid", "primary", "tuned")

Options = dict[str, Any]  # of `configure`
DEFAULTS: Options = {"eval_precision": "auto"}  # the same predictions, sooner on some processors


class Point(NamedTuple):
    """One combination of a grid's values: the options given to `configure`, and its result."""

    options: Options
    config: Config  # with any seed
    named: str = ""  # the method of its grid, if a tuning chose a different one


@dataclass(frozen=True)
class Primary:
    """The comparisons that a study is to decide: these methods, each with its objective alone.

    Those of a hypothesis on a benchmark in a mode are one family.
    """

    methods: tuple[str, ...]
    margins: Mapping[str, float]  # by metric, in points: an equivalence lies within it


@dataclass(frozen=True)
class Study:
    """A grid of runs: every point with every seed."""

    name: str
    title: str
    seeds: list[int]
    points: list[Point]
    primary: Primary | None = None

    def primary_points(self) -> list[Point]:
        """Return the points of the methods that are primary."""
        methods = self.primary.methods if self.primary else ()
        return [
            point for point in self.points if any(_is_named(point, method) for method in methods)
        ]

    def configs(self) -> list[Config]:
        """Return all runs; a run that two grids share is included once."""
        runs = (
            dataclasses.replace(point.config, seed=seed)
            for point in self.points
            for seed in self.seeds
        )
        return list({run.identity(): run for run in runs}.values())

    def narrowed(self, wanted: Mapping[str, Sequence[Any]]) -> Study:
        """Return the study with only the runs that have one of these values of each setting."""
        points = self.points
        for key, values in wanted.items():
            for value in values:
                if not any(_has(point, key, value) for point in self.points):
                    raise self._without(key, value, {_text(point, key) for point in self.points})
            points = [each for each in points if any(_has(each, key, value) for value in values)]
        if not points:
            conditions = ", ".join(f"{key} {' or '.join(map(str, v))}" for key, v in wanted.items())
            raise UserError(f"{self.name}: no run has all of {conditions}")
        return dataclasses.replace(self, points=points)

    def seeded(self, seeds: Sequence[int]) -> Study:
        """Return the study with only these seeds."""
        for seed in seeds:
            if seed not in self.seeds:
                raise self._without("seed", seed, set(map(str, self.seeds)))
        return dataclasses.replace(self, seeds=list(seeds))

    def _without(self, key: str, value: Any, there: set[str]) -> UserError:
        return UserError(f"{self.name}: {unknown(key, str(value), there)}")

    def replacing(self, options: Options) -> Study:
        """Return the study with these options in place of its own."""
        with _within(self.name):
            points = [
                _point({**point.options, **options})._replace(named=point.named)
                for point in self.points
            ]
        return dataclasses.replace(self, points=points)


@cache
def shipped() -> papers.Catalogue[Path]:
    """Return the files of the papers' studies by name."""
    folders = {paper: folder / "studies" for paper, folder in papers.folders().items()}
    return papers.Catalogue(
        "study",
        {
            paper: {file.stem: file for file in sorted(folder.glob("*.toml"))}
            for paper, folder in folders.items()
        },
    )


def names() -> list[str]:
    """Return the names of the papers' studies."""
    return sorted(shipped())


def text_of(source: str) -> str:
    """Return the text of a study's file."""
    path = _path(source)
    try:
        with opened(path) as file:
            text = file.read(LARGEST + 1).decode()
        if len(text) > LARGEST:
            raise UserError(f"{path} is too large for a study")
        return text
    except (OSError, UnicodeDecodeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or "it is not text"
        raise UserError(f"can't read {path}: {why}") from None


def load(source: str, plugins: Sequence[str] = (), tuned: bool = True) -> Study:
    """Load and check a study by its name or from a file.

    plugins: files that may define its components.
    tuned: whether it follows the choices of a tuning.
    """
    text, path = text_of(source), _path(source)
    with _within(source):
        try:
            content = tomllib.loads(text)
        except RecursionError:
            raise UserError("it is nested too deeply") from None
        except ValueError as error:  # a TOMLDecodeError is one, and a number of too many digits
            raise UserError(f"this is not TOML: {error}") from None
        if not tuned:
            content.pop("tuned", None)
        return _study(source, content, path.parent, plugins)


def _path(source: str) -> Path:
    given = Path(source).suffix == ".toml" or Path(source).is_file()
    return Path(source) if given and source not in shipped() else shipped().find(source)


def _study(name: str, content: Options, folder: Path, plugins: Sequence[str]) -> Study:
    _check_keys(content, KEYS)
    own_plugins = [str(folder / plugin) for plugin in _texts(content.get("plugins", []), "plugins")]
    grids = content.get("grid", [])
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise UserError("a grid begins with the line [[grid]]")
    if not grids:
        raise UserError("it has no [[grid]], and so no runs")
    points: list[Point] = []
    for number, grid in enumerate(grids, 1):
        with _within(f"grid {number}"):
            usual = {**DEFAULTS, "plugins": [*own_plugins, *plugins]}
            points += (_point({**usual, **options}) for options in _product(grid))
    with _within("tuned"):
        points = _tuned(points, read_choices(content.get("tuned", [])))
    seeds = _seeds(content.get("seeds", 1))
    _check_count(len(points) * len(seeds))
    title, _ = (_text_of(content.get(key, ""), key) for key in ("title", "about"))
    study = Study(name, title, seeds, points)
    if "primary" not in content:
        return study
    with _within("primary"):
        return _declaring(study, content["primary"])


def _tuned(points: Sequence[Point], choices: Sequence[Choice]) -> list[Point]:
    """Return the points with the options that a tuning chose for them; equal ones once."""
    for choice in choices:
        chosen = [point for point in points if _is_chosen(point, choice)]
        if not chosen:
            raise UserError(
                f"no grid has {choice.benchmark} {choice.mode} {choice.method or ''}".rstrip()
            )
        new = {
            point.config.identity(): point for point in (_using(point, choice) for point in chosen)
        }
        points = [point for point in points if point not in chosen] + [*new.values()]
    return [*points]


def _is_chosen(point: Point, choice: Choice) -> bool:
    config = point.config
    named = choice.method is None or _has(point, "method", choice.method)
    return choice.fits(config.benchmark, config.mode) and named


def _using(point: Point, choice: Choice) -> Point:
    known = _grid_options()
    _check_keys(choice.use, known)
    use = {key: known[key].value(value) for key, value in choice.use.items()}
    return _point({**point.options, **use})._replace(named=point.config.method)


def _declaring(study: Study, said: Any) -> Study:
    """Return the study with its primary comparisons, each of which its grids must hold."""
    if not isinstance(said, dict):
        raise UserError("it begins with the line [primary]")
    _check_keys(said, ("method", "margin"))
    methods = _texts(said.get("method", []), "method")
    if not methods:
        raise UserError('method is missing, such as method = ["er+gem"]')
    for method in methods:
        if not any(_is_named(point, method) for point in study.points):
            raise unknown("method", method, {point.config.method for point in study.points})
    declared = dataclasses.replace(study, primary=Primary((*methods,), _margins(said)))
    plain = [_without_routines(point) for point in study.points if not _routines(point)]
    for point in declared.primary_points():
        config = point.config
        if not _routines(point):
            raise UserError(f"{config.method} has no routine to compare with its objective alone")
        if _without_routines(point) not in plain:
            objective, place = config.components[0][0], f"{config.benchmark} {config.mode}"
            raise UserError(
                f"{config.method} is compared with {objective} alone, which no grid has on {place} "
                "with the same options"
            )
    return declared


def _routines(point: Point) -> int:
    return len(point.config.how)


def _without_routines(point: Point) -> tuple[Any, Options]:
    """Return the objective and the terms of a point, and its options except for the method."""
    others = {name: value for name, value in point.options.items() if name != "method"}
    return point.config.what, others


def _margins(said: Options) -> dict[str, float]:
    margins = said.get("margin", {})
    if not isinstance(margins, dict):
        raise UserError(f"margin must be such as {{min = 1.0, avg = 0.5}}, not {margins!r}")
    for metric, margin in margins.items():
        if metric not in MEASURES:
            raise unknown("metric", metric, MEASURES)
        if type(margin) not in (int, float) or not 0 < margin < math.inf:
            raise UserError(f"the margin of {metric} must be a positive number, not {margin!r}")
    return {metric: float(margin) for metric, margin in margins.items()}


def _seeds(given: Any) -> list[int]:
    """Return the first `given` seeds, or the seeds of a list."""
    seeds = given if isinstance(given, list) else None
    if seeds is None and type(given) is int and 0 < given <= MOST_SEEDS:
        seeds = usual_seeds(given)
    if not seeds:
        raise UserError(f"seeds must be a number or a list such as [142, 152], not {given!r}")
    seed = options(Request)["seed"]
    return list(dict.fromkeys(seed.value(each) for each in seeds))


def _product(grid: Options) -> Iterator[Options]:
    """Return all combinations, in the order written: the last key changes fastest."""
    known = _grid_options()
    _check_keys(grid, known)
    for key in WHAT:
        if key not in grid:
            raise UserError(f"{key} is missing")
    axes = [
        [known[key].value(each) for each in (given if isinstance(given, list) else [given])]
        for key, given in grid.items()
    ]
    for key, axis in zip(grid, axes, strict=True):
        if not axis:
            raise UserError(f"{key} is an empty list, so there are no runs")
    _check_count(math.prod(map(len, axes)))
    return (dict(zip(grid, point, strict=True)) for point in itertools.product(*axes))


def _check_count(runs: int) -> None:
    if runs > MOST_RUNS:
        raise UserError(
            f"these are {runs:,} runs, and a study has at most {MOST_RUNS:,}: divide it"
        )


def _point(options: Options) -> Point:
    benchmark, method = (options[name] for name in WHAT)
    others: Any = {name: value for name, value in options.items() if name not in WHAT}
    return Point(options, configure(benchmark, method, **others))


def _grid_options() -> dict[str, Option]:
    """Return the keys of a grid; seeds and plugins are those of the whole study."""
    return {
        name: each for name, each in options(Request).items() if name not in ("seed", "plugins")
    }


def _check_keys(said: Options, known: Iterable[str]) -> None:
    for key in said:
        if key not in known:
            raise unknown("key", key, known)


def _texts(given: Any, key: str) -> list[str]:
    """Return one text or a list of texts, as a list."""
    return [_text_of(each, key) for each in (given if isinstance(given, list) else [given])]


def _text_of(given: Any, key: str) -> str:
    if not isinstance(given, str):
        raise UserError(f"{key} must be text, not {given!r}")
    return given


def _has(point: Point, key: str, value: Any) -> bool:
    """Tell whether a point has this value; a method can be written in several ways."""
    if key == "method":
        value = name_of(Method.parse(value), point.config.benchmark, point.config.profile)
    return bool(getattr(point.config, key) == value)


def _is_named(point: Point, method: str) -> bool:
    """Tell whether a grid names a point's method so, whatever a tuning chose."""
    name = name_of(Method.parse(method), point.config.benchmark, point.config.profile)
    return name in (point.config.method, point.named)


def _text(point: Point, key: str) -> str:
    return str(getattr(point.config, key))


@contextmanager
def _within(where: str) -> Iterator[None]:
    """Add the place to the messages of UserErrors."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
