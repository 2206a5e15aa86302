"""Errors that a user can fix. The command line prints them in one line and exits with code 2."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_ENDLESS = re.compile(r"\S{300,}")


class UserError(ValueError):
    """A mistake in the input. The message states what is wrong and what would be right."""

    def __init__(self, message: str = "") -> None:
        """Cut words that nobody could read, such as a number of thousands of digits."""
        super().__init__(_ENDLESS.sub(lambda word: f"{word[0][:60]}...", message))


class MissingDataError(UserError):
    """A dataset that is not on this machine and cannot be fetched."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Return `unknown routine 'gme': did you mean 'gem'? (there are agem, gem, sgd)`."""
    names = sorted(known)
    close = closest(name, names)
    hint = f": did you mean {close!r}?" if close else ""
    listed = f"(there are {', '.join(names)})" if names else "(there are none)"
    return UserError(f"unknown {kind} {name!r}{hint} {listed}")


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name, ignoring case."""
    lower = {known.lower(): known for known in names}
    word = name.lower()
    close = difflib.get_close_matches(word, lower, cutoff=0.5)
    # Two letters in the wrong order are one mistake, which difflib counts as two.
    swaps = {f"{word[:k]}{word[k + 1]}{word[k]}{word[k + 2 :]}" for k in range(len(word) - 1)}
    close.sort(key=lambda known: known not in swaps)
    return lower[close[0]] if close else None
