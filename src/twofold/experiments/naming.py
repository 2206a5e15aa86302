"""Texts of methods: the canonical one, since there are several ways to write it, and its parts."""

from __future__ import annotations

import re

from twofold.errors import UserError
from twofold.experiments import profiles
from twofold.experiments.config import Config
from twofold.method import Method
from twofold.terms import Addition


def canonical(method: str, benchmark: str, profile: str) -> str:
    """Return the text of a method in runs of a profile, such as `er+gem` for `er+gem(0.5)`."""
    try:
        parsed = Method.parse(method)
    except UserError:  # a component is not available here, but may have runs
        return method
    return name_of(parsed, benchmark, profile)


def name_of(method: Method, benchmark: str, profile: str) -> str:
    """Return the shortest text that means the same under a profile.

    The profile of a run may be one of a paper that is not available here.
    """
    known = profile if profile in profiles.names() else profiles.DEFAULT
    return method.text(profiles.find(known, benchmark, method).components)


def what_and_how(config: Config) -> tuple[str, str]:
    """Return the objective with its terms, and the routines, as in the method's text."""
    objective = config.components[0][0]
    match = re.fullmatch(rf"({re.escape(objective)}(?:\(.*?\))?)(?:\+(.*))?", config.method)
    if match is None and len(config.components) == 1:  # a name of the user's own
        return config.method, "sgd"
    if match is None:  # gem is finetune+gem
        return objective, config.method
    pieces = re.findall(r"[^+(]+(?:\([^)]*\))?", match[2] or "")
    terms = [piece for piece in pieces if Addition.knows(piece.partition("(")[0])]
    how = [piece for piece in pieces if piece not in terms]
    return "+".join([match[1], *terms]), "+".join(how) or "sgd"


def colour_name(config: Config) -> str:
    """Return the part of a method that gives it its colour: its routines, or else its objective."""
    what, how = what_and_how(config)
    return what if how == "sgd" else how
