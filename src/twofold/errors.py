"""The errors that a user can mend. The command line prints them as one line and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something in the input is wrong: says what, and what would be right."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """`unknown routine 'gme': did you mean 'gem'? (there are agem, gem, sgd)`."""
    names = sorted(known)
    close = closest(name, names)
    hint = f": did you mean {close!r}?" if close else ""
    listed = f"(there are {', '.join(names)})" if names else "(there are none)"
    return UserError(f"unknown {kind} {name!r}{hint} {listed}")


def missing(what: str, extra: str) -> UserError:
    """A package of an optional extra. twofold is on no index: it is installed from its folder."""
    return UserError(f"{what}: in twofold's folder, pip install -c constraints.txt -e '.[{extra}]'")


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, whatever its case."""
    lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return lower[close[0]] if close else None
