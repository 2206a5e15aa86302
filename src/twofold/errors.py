"""The errors that a user can mend. The command line prints them as one line and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something in the input is wrong: says what, and what would be right."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """`unknown routine 'gme': did you mean 'gem'? (there are agem, gem, sgd)`."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = f"(there are {', '.join(names)})" if names else "(there are none)"
    return UserError(f"unknown {kind} {name!r}: {hint}{listed}")
