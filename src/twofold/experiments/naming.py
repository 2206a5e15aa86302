"""Methods as runs name them: a method may be written in more than one way."""

from __future__ import annotations

from twofold.errors import UserError
from twofold.experiments import profiles
from twofold.method import Method


def canonical(method: str, benchmark: str, profile: str) -> str:
    """The method as runs of a profile have it: `er+gem(0.5)` is `er+gem`."""
    try:
        parsed = Method.parse(method)
    except UserError:  # a component is not at hand: it may still have runs
        return method
    return name_of(parsed, benchmark, profile)


def name_of(method: Method, benchmark: str, profile: str) -> str:
    """The shortest text that means the same under a profile."""
    return method.text(profiles.find(profile, benchmark, method).components)
