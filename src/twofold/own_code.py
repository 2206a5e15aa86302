"""Digests of users' own code: all that a class, a function or a network of theirs consists of.

Modules count with their whole text, and so do the modules that they import. Code in a script, a
notebook or a shell counts piece by piece, with the functions, classes and values that it uses.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import pickle
import sys
import types
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from twofold.own_modules import SCRIPT, digest_of, file_of, imported, is_library, text_digest

UNKNOWN = "unknown"  # the start of a digest that is equal to no other one
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
BESIDE = {  # entries of a class that say nothing about what it does
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__"),
    *("__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl"),
    *("__parameters__", "__orig_bases__", "__match_args__", "__annotate__", "__annotate_func__"),
    *("__dataclass_fields__", "__dataclass_params__", "__hash__", "__annotations_cache__"),
}
GENERATED = {
    "__init__",
    "__repr__",
    "__eq__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__replace__",
}
DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)  # of slots
UNSHARED = (tuple, frozenset, types.CodeType)  # whether two are one object depends on the compiler


def code_digest(parts: Iterable[object], covered: Mapping[str, Any] = {}) -> str:
    """Return a digest of the users' own code in these objects; empty if there is none.

    If something cannot be described, the digest is new every time and gives the reason.

    covered: plugins, by the names of their modules. Their texts are recorded elsewhere, so only the
        modules that they import are read.
    """
    walk = _Walk({*covered})
    try:
        for plugin in covered.values():
            walk.modules(imported(plugin))
        for part in parts:
            walk.visit(part)
    except _UnknownError as error:
        return f"{UNKNOWN} {uuid.uuid4().hex[:10]}: {error}"
    return walk.digest()


class _UnknownError(Exception):
    """A value that no digest can describe."""


class _Walk:
    """A walk through objects of a user, which notes what it finds."""

    def __init__(self, covered: set[str]) -> None:
        self._covered = covered
        self._found = False  # whether anything belongs to a user
        self._notes = hashlib.sha256()
        self._texts: dict[str, str] = {}
        self._seen: dict[int, object] = {}  # which keeps them alive, so that no number is reused

    def digest(self) -> str:
        if not self._found and not self._texts:
            return ""
        self._note("modules", *(f"{name} {text}" for name, text in sorted(self._texts.items())))
        return self._notes.hexdigest()[:10]

    def _note(self, *facts: object) -> None:
        self._notes.update(repr(facts).encode())

    def modules(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._covered:
                self._texts.setdefault(name, text_digest(name))

    def _is_users(self, name: str | None) -> bool:
        """Tell whether a module is a user's and not a plugin, and note its text."""
        if name in self._covered or is_library(name or ""):
            return False
        file = file_of(name) if name and name not in SCRIPT else None
        if name and file is not None and name not in self._texts:
            package = getattr(sys.modules.get(name), "__package__", None)
            self.modules([name, *imported(file, package or "")])
        self._found = True
        return True

    def visit(self, value: Any) -> None:
        """Note all that a value consists of."""
        if isinstance(value, PLAIN):
            self._note(type(value).__name__, value)
        elif isinstance(value, UNSHARED):
            self._visit_new(value)
        elif id(value) in self._seen:
            self._note("again")
        else:
            self._seen[id(value)] = value
            self._visit_new(value)

    def _visit_new(self, value: Any) -> None:
        match value:
            case type():
                self._visit_class(value)
            case types.FunctionType():
                self._visit_function(value)
            case types.CodeType():
                self._visit_code(value)
            case types.ModuleType():
                self._note("module", value.__name__)
                self._is_users(value.__name__)
            case staticmethod() | classmethod() | types.MethodType():
                self._all("method", value.__func__, getattr(value, "__self__", None))
            case property():
                self._all("property", value.fget, value.fset, value.fdel)
            case functools.cached_property():
                self._all("property", value.func)
            case functools.partial():
                self._found = True  # a user has chosen the arguments
                self._all("partial", value.func, value.args, value.keywords)
            case Mapping():
                self._all("mapping", *(part for item in value.items() for part in item))
            case list() | tuple():
                self._all("list", *value)
            case set() | frozenset():
                self._note("set", *sorted(map(self._apart, value)))
            case Tensor() if value.layout is torch.strided:
                flat = value.detach().cpu().contiguous().reshape(-1)
                self._note(str(value.dtype), tuple(value.shape))
                self.visit(flat.view(torch.uint8).numpy())
            case np.ndarray() if not value.dtype.hasobject:
                self._note(str(value.dtype), value.shape, digest_of(value.tobytes()))
            case _ if isinstance(value, DESCRIPTORS):
                self._note(value.__name__)
            case _:
                self._visit_instance(value)

    def _all(self, kind: str, *parts: Any) -> None:
        self._note(kind, len(parts))
        for part in parts:
            self.visit(part)

    def _apart(self, value: Any) -> str:
        """Return the digest of a value alone, for values without an order."""
        walk = _Walk(self._covered)
        walk._found = True
        walk.visit(value)
        self._texts |= walk._texts
        return walk.digest()

    def _visit_class(self, cls: type) -> None:
        for base in cls.__mro__:
            self._note("class", base.__qualname__)
            if not self._is_users(base.__module__):
                continue
            for name, value in sorted(vars(base).items()):
                if name not in BESIDE and not _is_generated(base, name, value):
                    self._note(name)
                    self.visit(value)

    def _visit_function(self, function: types.FunctionType) -> None:
        self._note("function", function.__qualname__)
        if not self._is_users(function.__module__):
            return
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_set(cell)]
        self._all("closure", *cells, function.__defaults__, function.__kwdefaults__)
        if _in_module(function):
            return  # the text of the module has the rest
        self.visit(function.__code__)
        for name in sorted(_globals_in(function.__code__) & function.__globals__.keys()):
            self._note(name)
            self.visit(function.__globals__[name])

    def _visit_code(self, code: types.CodeType) -> None:
        self._note("code", code.co_code, code.co_names, code.co_varnames, code.co_freevars)
        self._all("constants", *code.co_consts)

    def _visit_instance(self, value: Any) -> None:
        """Note the class of a value and its attributes, or else all that would be written of it."""
        self.visit(type(value))
        own = self._is_users(type(value).__module__) or isinstance(value, nn.Module)
        if own and hasattr(value, "__dict__"):
            self.visit(vars(value))
            return
        try:
            self._note(pickle.dumps(value))
        except Exception as error:  # the value may be anything
            kind = type(value)
            name = f"{kind.__module__}.{kind.__qualname__}"
            raise _UnknownError(f"a {name} that it uses cannot be described") from error


def _in_module(definition: Any) -> bool:
    """Tell whether a class or a function is from a module with a file, and not from a script."""
    name = definition.__module__
    return name not in SCRIPT and file_of(name) is not None


def _is_generated(cls: type, name: str, value: object) -> bool:
    """Tell whether `dataclass` has written a method, from fields that are noted elsewhere."""
    code = getattr(value, "__code__", None)
    written = code is not None and code.co_filename == "<string>" and name in GENERATED
    return written and "__dataclass_params__" in vars(cls)


def _is_set(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a function that names itself, before its definition has ended
        return False


def _globals_in(code: types.CodeType) -> set[str]:
    """Return the global names that code reads, with those of functions inside it."""
    reading = ("LOAD_GLOBAL", "LOAD_NAME")
    names = {each.argval for each in dis.get_instructions(code) if each.opname in reading}
    inner = (_globals_in(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return names.union(*inner)
