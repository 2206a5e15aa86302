"""Find components by their files: adding a file adds a routine, an objective, a benchmark."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

from twofold.errors import UserError


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that what is defined there is registered."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


def import_file(path: str) -> None:
    """Run a user's file that defines components of their own; once a process."""
    file = Path(path).resolve()
    name = f"twofold_plugin_{file.stem}_{zlib.crc32(str(file).encode()):x}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UserError(f"plugin {path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it is the user's code: it may do anything, exit included
        del sys.modules[name]
        said = " ".join(str(error).split())
        raise UserError(f"plugin {path!r} can't be used: {type(error).__name__}: {said}") from error
