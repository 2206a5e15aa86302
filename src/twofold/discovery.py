"""Discovery of components by their files: a new file adds a routine, objective or benchmark."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pkgutil
import sys
import types
import zlib
from collections.abc import Iterable
from pathlib import Path

from twofold.component import Component
from twofold.errors import UserError
from twofold.own_modules import check_neighbours, digest_of, file_of, imported, text_digest

PLUGIN = "twofold_plugin_"  # the start of the names of plugins' modules


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that the components defined there are registered."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


def exported(kind: type[Component]) -> dict[str, type[Component]]:
    """Return the classes of the package's own components of a kind, by their Python names."""
    return {cls.__name__: cls for cls in kind.known.values()}


@functools.cache
def sources_digest(package: Path = Path(__file__).parent) -> str:
    """Return a digest of the package's Python files: two versions of one name may differ."""
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(
            f"{file.relative_to(package).as_posix()} {digest_of(file.read_bytes())}".encode()
        )
    return digest.hexdigest()[:10]


def import_file(path: str) -> None:
    """Run a user's file that defines components of their own, once per process.

    It can import the modules beside it. Installed modules of the same names come first, and a file
    that gets one of those in place of its neighbour is refused.
    """
    file, name = Path(path), module_of(path)
    if name in sys.modules:
        return
    if not file.exists():
        raise UserError(f"there is no file {path}")
    if file.suffix != ".py" or not file.is_file():
        raise UserError(f"plugin {path!r} is not a Python file")
    module = types.ModuleType(name)
    module.__file__ = str(file.resolve())
    sys.modules[name] = module
    if str(file.resolve().parent) not in sys.path:
        sys.path.append(str(file.resolve().parent))  # for good: a function may import later
    try:
        text = file.read_bytes()
        vars(module)["__digest__"] = digest_of(text)
        exec(compile(text, module.__file__, "exec", dont_inherit=True), module.__dict__)
        check_neighbours(file)
        for neighbour in imported(file):
            text_digest(neighbour)  # as it is now, while it is new
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code may raise anything, SystemExit included
        del sys.modules[name]
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        raise UserError(f"plugin {path!r} can't be used: {kind}{_message(error)}") from error


def _message(error: BaseException) -> str:
    """Return the message of a user's error in one line."""
    try:
        return " ".join(str(error).split())
    except Exception:  # the user's code makes the message, and may raise anything
        return "its message cannot be shown"


def with_neighbours(path: str) -> dict[str, bytes]:
    """Return the texts of a plugin and of the modules beside it that it imports, by their paths.

    The paths start at the plugin's folder.
    """
    file = Path(path).resolve()
    modules = [each.resolve() for name in imported(file) if (each := file_of(name)) is not None]
    beside = [each for each in modules if each.is_relative_to(file.parent)]
    return {str(each.relative_to(file.parent)): each.read_bytes() for each in (file, *beside)}


def plugin_digest(path: str) -> str:
    """Return the digest of a plugin's text: as executed in this process, or else as it is now.

    The digest is empty if there is no such file.
    """
    return executed_digest(path) or _digest_now(path)


def executed_digest(path: str) -> str:
    """Return the digest of a plugin's text as it was executed in this process, or nothing.

    It opens no file, so the path may come from a stranger's store.
    """
    return _text_of(module_of(path))


def changed_since_import(path: str) -> bool:
    return plugin_digest(path) != _digest_now(path)


def module_of(path: str) -> str:
    """Return the name of a plugin's module."""
    try:
        file = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or no path at all
        file = Path(path)
    return f"{PLUGIN}{file.stem}_{zlib.crc32(os.fsencode(file)):x}"


def modules_of(path: str) -> list[str]:
    """Return the names of a plugin's module and of its copies, as on a node of a cluster."""
    digest = executed_digest(path)
    plugins = [name for name in list(sys.modules) if name.startswith(PLUGIN)]
    copies = [name for name in plugins if digest and _text_of(name) == digest]
    return list(dict.fromkeys([module_of(path), *copies]))


def _text_of(name: str) -> str:
    """Return the digest of the text that was executed as a plugin's module, or nothing."""
    return getattr(sys.modules.get(name), "__digest__", "")


def _digest_now(path: str) -> str:
    file = Path(path)
    return digest_of(file.read_bytes()) if file.exists() else ""
