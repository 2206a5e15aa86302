"""A finder that refuses packages, as if they were not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from twofold.extras import EXTRAS

OPTIONAL = frozenset(package for packages in EXTRAS.values() for package in packages)


class Blocker:
    """Refuse to import these packages and their modules."""

    def __init__(self, packages: Iterable[str]) -> None:
        self.packages = frozenset(packages)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def block(packages: Iterable[str] = OPTIONAL) -> None:
    sys.meta_path.insert(0, Blocker(packages))
