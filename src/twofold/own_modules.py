"""Users' own modules: the files that their code imports, except for installed packages."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

from twofold.errors import UserError

SCRIPT = ("__main__", "__mp_main__")  # a script, here and in a worker process
INSTALLED = {"site-packages", "dist-packages"}


def digest_of(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def file_of(name: str) -> Path | None:
    """Return the file of a user's own module; None if it has none or is an installed one.

    A module that is not imported yet is looked for, since a function may import it later.
    """
    if is_library(name):
        return None
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None:
        spec = _spec_of(name)
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file is not None and not is_installed(file) else None


def is_library(name: str) -> bool:
    """Tell whether a module belongs to Python, to an installed package or to twofold."""
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or (top in sys.stdlib_module_names and top not in SCRIPT):
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is not None and top not in SCRIPT and is_installed(file)


@functools.cache
def is_installed(file: str) -> bool:
    """Tell whether a file belongs to Python, to an installed package or to twofold."""
    path = Path(file).resolve()
    return bool(INSTALLED & {*path.parts}) or any(map(path.is_relative_to, _places()))


@functools.cache
def _places() -> list[Path]:
    installed = [
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    ]
    here = str(Path(__file__).parent)
    return [Path(place).resolve() for place in (*installed, site.getusersitepackages(), here)]


def _spec_of(name: str) -> ModuleSpec | None:
    parent = name.rpartition(".")[0]
    if parent and parent not in sys.modules:
        return None  # to look inside a package would import it
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def imported(file: Path, package: str = "") -> list[str]:
    """Return the names of the users' own modules that a file imports, and those import in turn.

    package: the package of the file, from which relative imports start.
    """
    found: dict[str, None] = {}
    waiting = [(file, package)]
    while waiting:
        for name in _named_in(*waiting.pop()):
            own = file_of(name) if name not in found and name not in SCRIPT else None
            if own is not None:
                found[name] = None
                whole = own.name == "__init__.py"
                waiting.append((own, name if whole else name.rpartition(".")[0]))
    return sorted(found)


def _named_in(file: Path, package: str) -> Iterator[str]:
    """Yield all names in the imports of a file that may be modules, with their packages."""
    for name in _imports(file, package):
        parts = name.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _imports(file: Path, package: str) -> Iterator[str]:
    if file.suffix != ".py" or not file.exists():
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # whoever imports it learns what is wrong
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield base
                yield from (f"{base}.{each.name}" for each in node.names)


_executed: dict[str, tuple[ModuleSpec | None, str]] = {}  # a reloaded module has a new spec


def text_digest(name: str) -> str:
    """Return the digest of a module's text as it was executed, which must be as it is now."""
    file, module = file_of(name), sys.modules.get(name)
    assert file is not None, f"{name} is no module of a user's own"
    spec = getattr(module, "__spec__", None)
    now = digest_of(file.read_bytes()) if file.exists() else ""
    if module is None:
        return now
    known, digest = _executed.get(name, (None, ""))
    if not digest or known is not spec:
        _executed[name] = spec, now
        return now
    if now and now != digest:
        raise UserError(f"module {name!r} was changed after it was imported: restart Python")
    return digest


def check_neighbours(file: Path) -> None:
    """Refuse a file that got an installed or a different module in place of the one beside it."""
    for name in {name.partition(".")[0] for name in _imports(file, "")}:
        beside = next((each for each in _candidates(file.parent, name) if each.is_file()), None)
        there = getattr(sys.modules.get(name), "__file__", None)
        if beside is None or there is None or beside.resolve() == Path(there).resolve():
            continue
        if file_of(name) is None or text_digest(name) != digest_of(beside.read_bytes()):
            raise UserError(f"it imports {name} from {there}, not from {beside}: rename the latter")


def _candidates(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.py", folder / name / "__init__.py"
