"""Pairs: a method with a routine, and its objective alone, the same in everything else."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions
from twofold.compare.shelf import (
    Setting,
    Shelf,
    essence,
    evaluation_preference,
    training_preference,
)
from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.naming import name_of, what_and_how
from twofold.method import Method
from twofold.objectives import Objective
from twofold.statistics import FEWEST
from twofold.terms import Addition


class Pair(NamedTuple):
    """Two groups that differ only in the routine."""

    plain: Group
    routine: Group

    @property
    def config(self) -> Config:
        """The configuration of the method with the routine."""
        return self.routine.config

    @property
    def common(self) -> int:
        """The number of seeds that both have."""
        return len({*self.plain.seeds} & {*self.routine.seeds})

    def differences(self, metric: str) -> dict[int, float]:
        """Return routine minus plain SGD by seed, for the trained weights."""
        return _differences(*(group.trained_by_seed(metric) for group in self))

    def evaluated_effect(self, metric: str) -> float | None:
        """Return the mean difference of the evaluated weights; None if these were trained."""
        if not any(group.replaces_evaluated for group in self):
            return None
        differences = _differences(*(group.by_seed(metric) for group in self))
        return sum(differences.values()) / len(differences) if differences else None


def _differences(plain: dict[int, float], routine: dict[int, float]) -> dict[int, float]:
    return {seed: routine[seed] - plain[seed] for seed in routine if seed in plain}


def pairs(shelf: Shelf) -> list[Pair]:
    """Return all groups with a routine that have a partner that is the same otherwise."""
    # A file that defines the routine does nothing to plain SGD; bf16 is audited against fp32.
    ignored = ("plugins", "eval_precision")
    by_essence: dict[str, list[Group]] = {}
    for group in shelf.groups():
        by_essence.setdefault(essence(group.config, ignored), []).append(group)
    all_pairs = []
    for routine in with_routines(shelf):
        partners = by_essence.get(essence(plain_config(routine.config), ignored), [])
        all_pairs += (
            [max((Pair(plain, routine) for plain in partners), key=_fitness)] if partners else []
        )
    return all_pairs


def _fitness(pair: Pair) -> tuple[object, ...]:
    plain, routine = (group.config.plugins for group in pair)
    return plain == routine, not plain, pair.common, len(pair.plain.runs)


def with_routines(shelf: Shelf) -> list[Group]:
    return [group for group in shelf.groups() if group.config.how]


def plain_config(config: Config) -> Config:
    """Return the same without routines, with all options: the profile's defaults may differ."""
    ((name, options), *terms), text = config.what, what_and_how(config)[0]
    if Objective.knows(name):
        added = tuple((Addition.find(term), own) for term, own in terms)
        method = Method((Objective.find(name), options), (), added)
        text = name_of(method, config.benchmark, config.profile)
    return dataclasses.replace(config, method=text, components=config.what)


def chosen(found: Sequence[Pair], all_settings: bool) -> list[Pair]:
    """Return a pair per method, or per method and setting."""
    rivals: dict[tuple[str, Setting | None], list[Pair]] = {}
    for pair in found:
        setting = Setting.of(pair.config) if all_settings else None
        rivals.setdefault((essence(pair.config), setting), []).append(pair)
    return [_best(candidates) for candidates in rivals.values()]


def _best(rivals: Sequence[Pair]) -> Pair:
    """Return the pair in the setting in which the plain objective ends highest.

    Of several pairs in this setting, which differ in their evaluation, `_preference` chooses.
    """
    full = [pair for pair in rivals if not Reductions.of(pair.routine).training] or list(rivals)
    finals = {Setting.of(pair.plain.config): pair.plain.mean("avg") or 0.0 for pair in full}
    setting = max(finals, key=lambda s: (finals[s], s))
    same_setting = [pair for pair in full if Setting.of(pair.plain.config) == setting]
    return min(same_setting, key=_preference)


def _preference(pair: Pair) -> tuple[object, ...]:
    """For sorting: pairs with enough seeds for a test first, then those evaluated on all images.

    MIN on fewer images is a different quantity, however many seeds it has. Of the others, the pair
    with the most seeds comes first: a few runs with a fuller schedule do not replace many.
    """
    group = pair.routine
    fewer_images = bool(Reductions.of(group).images)
    evaluation = pair.common < FEWEST, fewer_images, -pair.common, *evaluation_preference(group)
    return *training_preference(group), *evaluation


def missing(group: Group) -> str:
    """Return a sentence on the partner that a group with a routine lacks."""
    config = group.config
    text = (
        f"{config.method} on {config.benchmark} {config.mode} ({Setting.of(config)}, profile "
        f"{config.profile}) has no plain {group.objective} that is the same in everything else"
    )
    try:
        command = plain_config(config).command(group.seeds)
    except UserError:  # a component that is not available here
        command = None
    return f"{text}: `{command}` trains it." if command else f"{text}."
