"""Departures of the authors' code from the paper's text, and the profile `published`.

docs/profiles.md describes each of them.
"""

from __future__ import annotations

from twofold.experiments.profiles import Departure
from twofold.method import Method


def _one_task_label(benchmark: str, method: Method) -> bool:
    """Apply where all tasks carry one task label, unless the method is GEM's: it has a buffer per
    task.
    """
    gem = any(routine.name == "gem" for routine, _ in method.routines)
    return benchmark == "rotated-mnist" and not gem


def _extra_pass(benchmark: str, method: Method) -> bool:
    """Apply to all methods except for BiC, which takes A-GEM's reference from its own pass."""
    return method.objective[0].name != "bic"


DEPARTURES = (
    Departure(
        "D1",
        "one memory for all tasks of Rotated MNIST",
        "memory_grouping",
        text="class-task",
        code="class",
        where=_one_task_label,
    ),
    Departure(
        "D2",
        "GEM's references add up over tasks",
        "references",
        text="independent",
        code="cumulative",
        components=("gem",),
    ),
    Departure(
        "D4",
        "full replay stores 20,000 examples per task",
        "keep",
        text=None,
        code=20_000,
        components=("joint",),
        where=_one_task_label,
    ),
    Departure(
        "D5",
        "A-GEM's reference is a pass of its own, batch norm frozen",
        "reference",
        text="objective",
        code="frozen",
        components=("agem",),
        where=_extra_pass,
    ),
    Departure("D6", "whitening with fixed constants", "whitening", text="train", code="published"),
    Departure(
        "D7",
        "crops of padded images",
        "augment",
        text="crop",
        code="pad",
        components=("der", "bic"),
    ),
)

PROFILES = {"published": DEPARTURES}

NOTES = {
    "paper": "These runs follow the paper's text. The authors' code, from which its numbers "
    "probably come, departs from the text: see `--profile published` and docs/profiles.md.",
    "published": "These runs follow the authors' code where it departs from the paper's text.",
}
