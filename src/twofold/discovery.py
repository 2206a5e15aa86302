"""Find components by their files: adding a file adds a routine, an objective, a benchmark."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that what is defined there is registered."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")
