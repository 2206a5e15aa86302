"""Profiles: `paper` is the text, the default; `published` is the authors' code where it departs.

Each departure is an option of a component that can also be set alone (docs/profiles.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twofold.choices import Grouping
from twofold.errors import unknown
from twofold.method import Method

NAMES = ("paper", "published")


class Departure(NamedTuple):
    """One thing that the authors' code does otherwise than the text."""

    name: str
    words: str
    option: str  # of a configuration, or of one of these components
    text: Any  # its value by the text,
    code: Any  # and in the code
    components: tuple[str, ...] = ()


DEPARTURES = (
    Departure(
        "D1", "one memory for all tasks of Rotated MNIST", "memory_grouping", "class-task", "class"
    ),
    Departure(
        "D2",
        "GEM's references add up over tasks",
        "references",
        text="independent",
        code="cumulative",
        components=("gem",),
    ),
    Departure("D4", "full replay stores 20,000 examples a task", "keep", None, 20_000, ("joint",)),
    Departure(
        "D5",
        "A-GEM's reference is a pass of its own, batch norm frozen",
        "reference",
        text="objective",
        code="frozen",
        components=("agem",),
    ),
    Departure("D6", "whitening with fixed constants", "whitening", "train", "published"),
    Departure("D7", "crops of padded images", "augment", "crop", "pad", ("der", "bic")),
)


@dataclass(frozen=True)
class Profile:
    """Defaults for what a user did not set: component options by name, memory, whitening."""

    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def profile(name: str, benchmark: str, method: Method) -> Profile:
    if name not in NAMES:
        raise unknown("profile", name, NAMES)
    return Profile() if name == "paper" else _published(benchmark, method)


def _published(benchmark: str, method: Method) -> Profile:
    objective = method.objective[0].name
    with_gem = any(cls.name == "gem" for cls, _ in method.routines)
    options: dict[str, dict[str, Any]] = {
        "gem": {"references": "cumulative"},  # D2
        "der": {"augment": "pad"},  # D7
        "bic": {"augment": "pad"},  # D7
    }
    if objective != "bic":
        options["agem"] = {"reference": "frozen"}  # D5
    grouping: Grouping = "class-task"
    if benchmark == "rotated-mnist" and not with_gem:
        grouping = "class"  # D1: its tasks all carry one task label; GEM has a buffer a task
        options["joint"] = {"keep": 20_000}  # D4
    return Profile(options, {"memory_grouping": grouping, "whitening": "published"})  # D6
