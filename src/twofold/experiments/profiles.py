"""Profiles: named sets of departures from a paper's text.

The profile `paper` is the default and has no departures. Papers add further ones in their
profiles.py, which has any of

    DEPARTURES  a tuple of Departure
    PROFILES    {name: departures}: the departures that a profile has, wherever they apply
    NOTES       {name: sentence}: the note below this paper's tables with the runs of a profile

A departure sets an option that a user can also set alone, and what a user sets wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from twofold import papers
from twofold.errors import unknown
from twofold.method import Method

if TYPE_CHECKING:
    from twofold.augmentation import Augmentation

DEFAULT = "paper"
AUGMENT = "augment"  # the option of objectives that augment images


def everywhere(benchmark: str, method: Method) -> bool:
    """Apply to every benchmark and method."""
    return True


@dataclass(frozen=True)
class Departure:
    """One thing that the code behind a paper's numbers does differently from its text."""

    name: str
    words: str
    option: str  # of a configuration, or of these components
    text: Any  # its value in the text
    code: Any  # its value in the code
    components: tuple[str, ...] = ()
    where: Callable[[str, Method], bool] = everywhere  # by benchmark and method


@dataclass(frozen=True)
class Profile:
    """Defaults for what a user did not set: options of components by name, and settings."""

    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def names() -> list[str]:
    """Return the names of all profiles, the default first."""
    return [DEFAULT, *_profiles()]


def find(
    name: str, benchmark: str, method: Method, augmentation: Augmentation | None = None
) -> Profile:
    """Return what a benchmark and a profile set for a method.

    The benchmark decides whether images are augmented. A profile may decide how.

    augmentation: the benchmark's own (default: that of the benchmark with this name, if any).
    """
    if name != DEFAULT and name not in _profiles():
        raise unknown("profile", name, names())
    if augmentation is None:
        from twofold.benchmarks import Recipe  # torch, which --help does not need

        augmentation = getattr(Recipe.known.get(benchmark), "augmentation", "none")
    written = [part for part, _ in (method.objective, *method.routines)]
    augmenting = [part.name for part in written if AUGMENT in part.options()]
    profile = Profile({part: {AUGMENT: augmentation} for part in augmenting})
    for departure in () if name == DEFAULT else _profiles().find(name):
        if departure.where(benchmark, method):
            for component in departure.components:
                if departure.option == AUGMENT and augmentation == "none":
                    continue
                options = profile.components.setdefault(component, {})
                options[departure.option] = departure.code
            if not departure.components:
                profile.settings[departure.option] = departure.code
    return profile


@cache
def departures() -> papers.Catalogue[Departure]:
    """Return the departures of all papers by name."""
    modules = papers.modules("profiles")
    return papers.Catalogue(
        "departure",
        {
            paper: {each.name: each for each in getattr(module, "DEPARTURES", ())}
            for paper, module in modules.items()
        },
    )


def note(paper: str, profile: str) -> str:
    """Return what a paper says about runs of a profile; nothing if it says nothing."""
    module = papers.modules("profiles").get(paper)
    return str(getattr(module, "NOTES", {}).get(profile, ""))


@cache
def _profiles() -> papers.Catalogue[Sequence[Departure]]:
    modules = papers.modules("profiles")
    return papers.Catalogue(
        "profile", {paper: getattr(module, "PROFILES", {}) for paper, module in modules.items()}
    )
