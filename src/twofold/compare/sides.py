"""Sides of a comparison that a user asks for: runs that differ in one thing and nothing else.

The thing is the method, or any setting by which runs are told apart. All other settings must be
equal, except for those that the user allows to differ. Trained weights that each seed starts from
are part of the seed. If several settings are left, or none, the error names what to add.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from twofold.compare.groups import Group, groups
from twofold.compare.reductions import Reductions
from twofold.compare.selection import can_be_run
from twofold.compare.shared import START
from twofold.compare.shelf import preference
from twofold.compare.starts import one_start_per_seed
from twofold.component import plain
from twofold.errors import UserError, unknown
from twofold.experiments.config import QUOTA, Config, own_settings
from twofold.experiments.runs import Run
from twofold.experiments.several import matches
from twofold.options import Option, options

PAIRED = ("seed", "own")  # two runs of a pair have the same
PRECISION = "eval_precision"  # of which only counts what audits found
ONE = ("benchmark",)  # a comparison is on one
FIRST = (*ONE, "mode", "profile")  # named first if there is a choice
FEWEST_SEEDS = 2

Values = dict[str, Any]


@dataclass(frozen=True)
class Side:
    """One method or setting, and its runs."""

    name: str  # `er+gem`, `adam`, `memory 200`
    group: Group

    @property
    def by_seed(self) -> dict[int, Run]:
        return {run.config.seed: run for run in self.group.runs}

    def common(self, other: Side) -> list[int]:
        """Return the seeds that both have, on the same data."""
        mine, theirs = self.by_seed, other.by_seed
        return [
            seed
            for seed, run in mine.items()
            if seed in theirs and theirs[seed].config.own == run.config.own
        ]


class Axis:
    """What sides are told apart by: the name of an option or of a user's own setting."""

    def __init__(self, name: str, runs: Sequence[Run]) -> None:
        known = comparable(runs)
        self.option = known[find_setting(name, known)]
        self.name = self.option.name

    def read(self, given: Any) -> Any:
        """Return a value of the setting, which the command line gives as text."""
        if not isinstance(given, str) or self.name == "method":
            return given
        if self.option.hint is not Any:
            return self.option.value(given, text=True)
        try:
            return json.loads(given)
        except ValueError:
            return given

    def words(self, value: Any) -> str:
        """Return `er+gem` for a text, and `width 64` for a number."""
        return value if isinstance(value, str) else f"{self.option.column} {plain(value)}"


def comparable(runs: Sequence[Run]) -> dict[str, Option]:
    """Return the options by which these runs can be compared, users' own settings included."""
    apart = (*PAIRED, *ONE)
    known = options(Config) | own_settings(run.config for run in runs)
    return {n: each for n, each in known.items() if each.role != "place" and n not in apart}


def find_setting(name: str, known: Iterable[str]) -> str:
    """Return a setting's name; an option can be written as its flag is."""
    names = list(known)
    written = [each for each in (name, name.replace("-", "_")) if each in names]
    if not written:
        raise unknown("setting", name, names)
    return written[0]


def sides(
    runs: Sequence[Run],
    given: Sequence[Any],
    by: str = "method",
    may_differ: Sequence[str] = (),
    curves: bool = True,
) -> list[Side]:
    """Return a side for each value, in the one setting that all of them have.

    may_differ: settings that need not be equal.
    curves: whether numbers are needed that follow from whole curves only. If not, runs that know
        MIN exactly count as evaluated alike.
    """
    axis = Axis(by, runs)
    values = [axis.read(each) for each in given]
    if len(values) < 2:
        raise UserError(
            "name at least two to compare, such as `twofold compare er er+gem`: the first is the "
            "baseline"
        )
    allowed = [find_setting(name, comparable(runs)) for name in may_differ]
    compared = _compared(runs, axis, values)
    aspects = _Aspects(runs, axis.name, allowed, curves)
    shelves = [_shelf(compared, axis, value, aspects) for value in values]
    keys = [key for key in shelves[0] if all(key in shelf for shelf in shelves)]
    names = [_name(shelf, axis) for shelf in shelves]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name} is named twice")
    if not keys:
        raise _different(names, shelves)
    if len(keys) > 1:
        raise _ambiguous([json.loads(key) for key in keys], compared)
    found = [
        Side(name, _one_group(name, shelf[keys[0]]))
        for name, shelf in zip(names, shelves, strict=True)
    ]
    for other in found[1:]:
        _check_seeds(found[0], other)
    return found


class _Aspects:
    """All settings that must be equal on both sides, as plain values."""

    def __init__(self, runs: Sequence[Run], by: str, allowed: Iterable[str], curves: bool) -> None:
        memory = "memory" if by in QUOTA else by  # the value of memory includes its quota
        apart = {*PAIRED, *QUOTA, by, memory, *allowed}
        known = dict.fromkeys((*FIRST, *comparable(runs)))
        self._names = [name for name in known if name not in apart]
        self._curves = curves

    def key(self, group: Group) -> str:
        values = {name: group.config.value(name) for name in self._names}
        if not self._curves and group.knows_min and "eval_schedule" in values:
            values["eval_schedule"] = "every"
        if PRECISION in values and not Reductions.of(group).precision:
            values[PRECISION] = "fp32"
        return json.dumps(values)


def _compared(runs: Sequence[Run], axis: Axis, values: Sequence[Any]) -> list[Run]:
    """Return the runs with one of the values. Seeds that have starts of their own share one."""
    with_value = [[run for run in runs if matches(run.config, {axis.name: v})] for v in values]
    for value, found in zip(values, with_value, strict=True):
        if not found:
            raise _missing(runs, axis, value)
    compared = [run for found in with_value for run in found]
    return compared if axis.name == START else one_start_per_seed(compared)


def _shelf(
    runs: Sequence[Run], axis: Axis, value: Any, aspects: _Aspects
) -> dict[str, list[Group]]:
    """Return the groups with a value, by all other settings."""
    shelf: dict[str, list[Group]] = {}
    for group in groups(run for run in runs if matches(run.config, {axis.name: value})):
        shelf.setdefault(aspects.key(group), []).append(group)
    return shelf


def _name(shelf: dict[str, list[Group]], axis: Axis) -> str:
    """Return the name of a side as its runs have it, since a method has several spellings."""
    first = next(iter(shelf.values()))[0]
    return axis.words(first.config.value(axis.name))


def _missing(runs: Sequence[Run], axis: Axis, value: Any) -> UserError:
    known = {plain(run.config.value(axis.name)) for run in runs}
    if axis.name != "method" or not can_be_run(str(value)):
        return unknown(axis.option.column, plain(value), known)
    # In the setting of most seeds, so that there is something to compare them with.
    largest = max(groups(runs), key=lambda group: len(group.seeds))
    command = dataclasses.replace(largest.config, method=str(value)).command(largest.seeds)
    way = f": train them with `{command}`" if command else ""  # none for tensors in a script
    return UserError(f"no runs of {value}{way} (there are {', '.join(sorted(known))})")


def _ambiguous(found: Sequence[Values], runs: Sequence[Run]) -> UserError:
    """Return the error for several settings, with the flags that choose one of them."""
    left, chosen = list(found), found[0]
    names = []
    for name in _differing(found):
        if len({json.dumps(values[name]) for values in left}) > 1:
            names.append(name)
            left = [values for values in left if values[name] == chosen[name]]
    words = "; ".join(f"{_words(name)} {_listed(v[name] for v in found)}" for name in names)
    flags = [_flag(name, chosen[name], runs) for name in names]
    return UserError(
        f"{len(found)} settings could be compared ({words}): add {' '.join(flags)}, for instance"
    )


def _different(names: Sequence[str], shelves: Sequence[dict[str, list[Group]]]) -> UserError:
    """Return the error for sides that have no setting in common: what separates the nearest."""
    for (one, first), (other, second) in combinations(zip(names, shelves, strict=True), 2):
        if not first.keys() & second.keys():
            pairs = [[json.loads(a), json.loads(b)] for a in first for b in second]
            near = min(pairs, key=lambda pair: len(_differing(pair)))
            differing = _differing(near)
            words = "; ".join(
                f"{_words(name)} {plain(near[0][name])} and {plain(near[1][name])}"
                for name in differing
            )
            way = f"--may-differ {','.join(differing)} compares them nevertheless"
            if {*ONE} & {*differing}:
                way = f"a comparison is on one {ONE[0]}"
            return UserError(f"{one} and {other} have no runs with equal settings ({words}): {way}")
    return UserError(f"no setting has runs of all of {', '.join(names)}: compare fewer of them")


def _differing(found: Sequence[Values]) -> list[str]:
    return [name for name in found[0] if len({json.dumps(values[name]) for values in found}) > 1]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(map(plain, values)))


def _flag(name: str, value: Any, runs: Sequence[Run]) -> str:
    if name == START:  # it has no flag, but the place of the weights has one
        places = {run.config.start_digest: run.config.start_from for run in runs}
        name, value = "start_from", places[value]
    known = options(Config)
    if name not in known:
        return f"--set {name}={json.dumps(value)}"
    return f"{known[name].flag_text} {shlex.quote(plain(value))}"


def _one_group(name: str, found: Sequence[Group]) -> Group:
    """Return the group of one setting: seeds evaluated in fp32 and in bf16 count together."""
    versions = {json.dumps([run.config.components, run.plugins]) for g in found for run in g.runs}
    if len(versions) > 1:
        runs = ", ".join(str(group.runs[0].summary["identity"]) for group in found)
        raise UserError(
            f"the runs of {name} come from {len(versions)} versions of its code (such as {runs}): "
            "`twofold runs show` shows them, and `twofold runs remove` removes those of one"
        )
    by_seed: dict[int, Run] = {}
    for group in sorted(found, key=preference):
        for run in group.runs:
            if by_seed.setdefault(run.config.seed, run).config.own != run.config.own:
                raise UserError(
                    f"the runs of {name} are on different data that are both called "
                    f"{run.config.benchmark}: keep them in separate folders"
                )
    return Group(tuple(by_seed[seed] for seed in sorted(by_seed)))


def _check_seeds(one: Side, other: Side) -> None:
    common = one.common(other)
    if len(common) >= FEWEST_SEEDS:
        return
    if len({*one.group.seeds} & {*other.group.seeds}) >= FEWEST_SEEDS:
        raise UserError(
            f"{one.name} and {other.name} were trained on different data that are both called "
            f"{one.group.config.benchmark}"
        )
    count = "only one seed" if common else "no seed"
    seeds = "; ".join(f"{side.name} {_listed(side.group.seeds)}" for side in (one, other))
    text = f"{one.name} and {other.name} have {count} in common ({seeds}), and two are needed"
    lacking = [seed for seed in one.group.seeds if seed not in other.group.seeds]
    command = other.group.config.command(lacking) if lacking else None
    raise UserError(f"{text}: `{command}` trains more" if command else f"{text}")
