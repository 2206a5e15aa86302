"""Studies: named grids of runs, declared as data, in papers' folders or your own. A TOML file each:

    title = "..."                    # in one line; more of it in `about`
    seeds = 5                        # the paper's first five; or a list of seeds
    plugins = ["mine.py"]            # your own components, if any; beside this file

    [[grid]]                         # as many as you like
    benchmark = "rotated-mnist"      # one value, or a list:
    method = ["er", "er+gem"]        # the runs are all combinations
    lr = [0.1, 0.01]                 # any option of `configure`; what is not given is its default

Everything is checked when a study is loaded: a mistake is answered before anything runs.
"""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from twofold import papers
from twofold.errors import UserError, unknown
from twofold.experiments.config import Config, configure, paper_seeds
from twofold.experiments.naming import name_of
from twofold.method import Method

KEYS = ("title", "about", "seeds", "plugins", "grid")  # of a file; those of a grid are `_kinds`
JUDGING = ("eval_every", "eval_schedule")  # two ways to say when: either replaces both
WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}

Options = dict[str, Any]  # of `configure`


class Point(NamedTuple):
    """One combination of a grid's values: the options given to `configure`, and its result."""

    options: Options
    config: Config  # with any seed


@dataclass(frozen=True)
class Study:
    """A grid of runs: every point with every seed."""

    name: str
    title: str
    seeds: list[int]
    points: list[Point]

    def configs(self) -> list[Config]:
        """All runs; those that two grids share are there once."""
        runs = (
            dataclasses.replace(point.config, seed=seed)
            for point in self.points
            for seed in self.seeds
        )
        return list({run.identity(): run for run in runs}.values())

    def narrowed(self, wanted: Mapping[str, Sequence[Any]]) -> Study:
        """Only the runs that have, of each of these settings, one of these values."""
        points = self.points
        for key, values in wanted.items():
            for value in values:
                if not any(_has(point, key, value) for point in self.points):
                    raise self._without(key, value, {_text(point, key) for point in self.points})
            points = [each for each in points if any(_has(each, key, value) for value in values)]
        if not points:
            asked = ", ".join(f"{key} {' or '.join(map(str, v))}" for key, v in wanted.items())
            raise UserError(f"{self.name}: no run has all of {asked}")
        return dataclasses.replace(self, points=points)

    def seeded(self, seeds: Sequence[int]) -> Study:
        """Only the runs with these seeds."""
        for seed in seeds:
            if seed not in self.seeds:
                raise self._without("seed", seed, set(map(str, self.seeds)))
        return dataclasses.replace(self, seeds=list(seeds))

    def _without(self, key: str, value: Any, there: set[str]) -> UserError:
        return UserError(f"{self.name}: {unknown(key, str(value), there)}")

    def replacing(self, options: Options) -> Study:
        """The same runs with these options, whatever the study says of them."""
        gone = JUDGING if options.keys() & {*JUDGING} else ()
        kept = ({k: v for k, v in point.options.items() if k not in gone} for point in self.points)
        with _within(self.name):
            points = [_point({**own, **options}) for own in kept]
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
    """The file of a study, as it is."""
    path = _path(source)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or "it is not text"
        raise UserError(f"can't read {path}: {why}") from None


def load(source: str, plugins: Sequence[str] = ()) -> Study:
    """A study by its name, or from a file; checked. `plugins` define what it may speak of."""
    text, path = text_of(source), _path(source)
    with _within(source):
        try:
            said = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"this is not TOML: {error}") from None
        return _study(source, said, path.parent, plugins)


def _path(source: str) -> Path:
    given = Path(source).suffix == ".toml" or Path(source).is_file()
    return Path(source) if given and source not in shipped() else shipped().find(source)


def _study(name: str, said: Options, folder: Path, plugins: Sequence[str]) -> Study:
    _check_keys(said, KEYS)
    own = [str(folder / plugin) for plugin in _values(said.get("plugins", []), "plugins", str)]
    grids = said.get("grid", [])
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise UserError("a grid begins with the line [[grid]]")
    if not grids:
        raise UserError("it has no [[grid]], and so no runs")
    points: list[Point] = []
    for number, grid in enumerate(grids, 1):
        with _within(f"grid {number}"):
            given = ({**options, "plugins": [*own, *plugins]} for options in _product(grid))
            points += map(_point, given)
    seeds = _seeds(said.get("seeds", 1))
    for seed in seeds:
        configure(**points[0].options, seed=seed)  # which knows what seeds there can be
    title, _ = (_value(said.get(key, ""), key, str) for key in ("title", "about"))
    return Study(name, title, seeds, points)


def _seeds(said: Any) -> list[int]:
    """`5`: the paper's first five; otherwise a list of seeds."""
    seeds = _values(said, "seeds", int)
    if not isinstance(said, list):
        seeds = paper_seeds(said)
    if not seeds:
        raise UserError(f"seeds must be how many, or a list such as [142, 152], not {said}")
    return list(dict.fromkeys(seeds))


def _product(grid: Options) -> Iterator[Options]:
    """All combinations, in the order written: the last key changes fastest."""
    kinds = _kinds()
    _check_keys(grid, kinds)
    for key in ("benchmark", "method"):
        if key not in grid:
            raise UserError(f"it says no {key}")
    axes = [_values(said, key, kinds[key]) for key, said in grid.items()]
    for key, axis in zip(grid, axes, strict=True):
        if not axis:
            raise UserError(f"{key} is an empty list, so there are no runs")
    return (dict(zip(grid, point, strict=True)) for point in itertools.product(*axes))


def _point(options: Options) -> Point:
    return Point(options, configure(**options))


def _kinds() -> dict[str, type]:
    """The keys of a grid and the types of their values: the options of `configure`."""
    hints = typing.get_type_hints(configure)
    for key in ("seed", "plugins", "return"):  # said for the whole study, or not at all
        del hints[key]
    return {key: _kind(hint) for key, hint in hints.items()}


def _kind(hint: Any) -> type:
    """`float | None` as float; a Literal is text."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = typing.get_args(hint)[0]
    return str if typing.get_origin(hint) is typing.Literal else hint


def _check_keys(said: Options, known: Sequence[str] | Mapping[str, type]) -> None:
    for key in said:
        if key not in known:
            raise unknown("key", key, known)


def _values(said: Any, key: str, kind: type) -> list[Any]:
    """One value or a list of them, as a list."""
    return [_value(v, key, kind) for v in (said if isinstance(said, list) else [said])]


def _value(said: Any, key: str, kind: type) -> Any:
    whole = kind is float and type(said) is int  # lr = 1
    if type(said) is not kind and not whole:  # a bool is an int to isinstance
        raise UserError(f"{key} must be {WORDS[kind]}, not {said!r}")
    return said


def _has(point: Point, key: str, value: Any) -> bool:
    """Return whether it has this value; a method may be written in more than one way."""
    if key == "method":
        value = name_of(Method.parse(value), point.config.benchmark, point.config.profile)
    return bool(getattr(point.config, key) == value)


def _text(point: Point, key: str) -> str:
    return str(getattr(point.config, key))


@contextmanager
def _within(where: str) -> Iterator[None]:
    """What goes wrong in here says where it is."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
