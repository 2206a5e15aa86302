"""Canonical texts of methods, since a method can be written in several ways."""

from __future__ import annotations

from twofold.errors import UserError
from twofold.experiments import profiles
from twofold.method import Method


def canonical(method: str, benchmark: str, profile: str) -> str:
    """Return the text of a method in runs of a profile, such as `er+gem` for `er+gem(0.5)`."""
    try:
        parsed = Method.parse(method)
    except UserError:  # a component is not available here, but may have runs
        return method
    return name_of(parsed, benchmark, profile)


def name_of(method: Method, benchmark: str, profile: str) -> str:
    """Return the shortest text that means the same under a profile."""
    return method.text(profiles.find(profile, benchmark, method).components)
