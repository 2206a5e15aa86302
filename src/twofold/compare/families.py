"""Families: which comparisons a study declares as primary, and which are exploratory.

A study's [primary] names the methods that it compares with their objectives. Those of a benchmark,
mode and profile are one family per hypothesis, corrected for as many as are declared, whether they
were run or not. All other comparisons are exploratory: one family per hypothesis and profile,
without margins. Runs of further methods in a store therefore change no primary verdict.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from twofold.compare.shelf import SMALLER, essence
from twofold.errors import UserError
from twofold.experiments import studies
from twofold.experiments.config import Config
from twofold.experiments.studies import Point, Study

# What a run may differ in from the study: evaluation, and files that define nothing of the method.
APART = ("plugins", *(name for name in SMALLER if name.startswith("eval_")))


@dataclass(frozen=True)
class Family:
    """Comparisons that are corrected together, on one profile's runs."""

    profile: str
    study: str = ""  # none if they are exploratory
    methods: int | None = None  # declared; None for as many as there are
    settings: int | None = None  # the same, with each learning rate and batch size counted
    margins: Mapping[str, float] = field(default_factory=dict)
    _members: frozenset[str] = frozenset()

    def holds(self, config: Config) -> bool:
        """Return whether the study declares this method in this setting and place."""
        return config.profile == self.profile and essence(config, APART) in self._members


def primary_families(study: str | None, profile: str) -> list[Family]:
    """Return the families that a study declares, or all studies of papers do."""
    declaring = _shipped() if study is None else (_declaring(study),)
    return [family for each in declaring for family in _families(each, profile)]


def _declaring(name: str) -> Study:
    study = studies.load(name)
    if study.primary is None:
        raise UserError(
            f"the study {name} declares no primary comparisons: add [primary] to it "
            "(docs/studies.md)"
        )
    return study


def _families(study: Study, profile: str) -> list[Family]:
    with_profile = [point for point in study.points if "profile" in point.options]
    if not with_profile:
        study = study.replacing({"profile": profile})
    places: dict[tuple[str, str], list[Point]] = {}
    for point in study.primary_points():
        places.setdefault((point.config.benchmark, point.config.mode), []).append(point)
    margins = study.primary.margins if study.primary else {}
    return [_family(study.name, profile, points, margins) for points in places.values()]


def _family(
    study: str, profile: str, points: Sequence[Point], margins: Mapping[str, float]
) -> Family:
    methods = {essence(point.config) for point in points}
    members = frozenset(essence(point.config, APART) for point in points)
    return Family(profile, study, len(methods), len(members), margins, members)


@cache
def _shipped() -> tuple[Study, ...]:
    """Return the studies of papers that declare primary comparisons."""
    declaring = [
        name for name in studies.names() if "primary" in tomllib.loads(studies.text_of(name))
    ]
    return tuple(map(studies.load, declaring))
