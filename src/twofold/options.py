"""Options, each described once: name, type, default, check, help and role.

An option is a field of a dataclass:

    lr: float = option(0.1, help="learning rate", check=above(0))

Flags, the keys of study files, filters, column labels, the keywords of Python functions and the
identity of a run all follow from that one entry.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
import os
import types
import typing
from collections.abc import Callable, Hashable, Iterable
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from twofold.errors import UserError, unknown

Role = Literal["result", "name", "place"]
Check = Callable[[Any], str | None]  # the requirement that a value does not meet, or None

KEY = "option"  # the key in a field's metadata
PATH, NAME = 4095, 255  # bytes that a path and each name in it may have


@dataclass(frozen=True)
class Described:
    """The description of an option that a dataclass field lacks."""

    help: str
    check: Check | None = None
    role: Role = "result"
    label: str = ""
    group: str = ""
    metavar: str = ""
    flag: str | None = ""
    axis: bool = False
    reduces: bool = False
    commas: bool = False


@dataclass(frozen=True)
class Option(Described):
    """One option of a dataclass, complete.

    role: `result` decides a run's result and is part of its identity. `name` is a label for the
        values of other options. `place` specifies where or how to work and never changes a result.
    label: the short name in tables and figures.
    group: the heading in `--help`.
    flag: the flag, if it does not follow from the name; None for no flag.
    axis: whether studies vary it, so that a study can be narrowed by it.
    reduces: whether it makes a run smaller, in training or in evaluation, to save time.
    commas: whether its values have commas, so that a filter takes one of them.
    """

    name: str = ""
    hint: Any = str
    default: Any = None

    @property
    def words(self) -> str:
        """The name in error messages."""
        return self.name.replace("_", " ")

    @property
    def column(self) -> str:
        """The heading of a table's column."""
        return self.label or self.words

    @property
    def several(self) -> bool:
        """Whether the option holds a list, one flag per value."""
        return typing.get_origin(self.hint) is list

    @property
    def flag_text(self) -> str:
        """The flag on the command line."""
        return self.flag or "--" + self.name.replace("_", "-")

    def value(self, given: Any, text: bool = False) -> Any:
        """Return a checked value of the option's type. With `text`, it is given as text."""
        if self.several:
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise UserError(f"{self.words} must be a list, not {shown(given)}")
            return list(given)
        converted = convert(given, self.hint, self.words, text)
        expectation = self.check(converted) if self.check and converted is not None else None
        if expectation is not None:
            raise UserError(f"{self.words} must be {expectation}, not {shown(converted)}")
        return converted


def option(
    default: Any,
    *,
    help: str,
    check: Check | None = None,
    role: Role = "result",
    label: str = "",
    group: str = "",
    metavar: str = "",
    flag: str | None = "",
    axis: bool = False,
    reduces: bool = False,
    commas: bool = False,
) -> Any:
    """Return a dataclass field that is an option."""
    described = Described(help, check, role, label, group, metavar, flag, axis, reduces, commas)
    if isinstance(default, list):
        return dataclasses.field(default_factory=default.copy, metadata={KEY: described})
    return dataclasses.field(default=default, metadata={KEY: described})


def options(cls: type[Any]) -> dict[str, Option]:
    """Return the options of a dataclass by name, in the order in which they are declared."""
    return dict(_options(typing.cast(Hashable, cls)))


@functools.cache
def _options(cls: Any) -> dict[str, Option]:
    hints = typing.get_type_hints(cls)
    entries = {}
    for field in dataclasses.fields(cls):
        if KEY in field.metadata:
            described = vars(field.metadata[KEY])
            factory = field.default_factory
            default = factory() if factory is not MISSING else field.default
            entries[field.name] = Option(
                **described, name=field.name, hint=hints[field.name], default=default
            )
    return entries


def given_options(cls: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Check values by name. The error for an unknown name suggests the closest one."""
    known = options(cls)
    for name in given:
        if name not in known:
            raise unknown("option", name, known)
    return {name: known[name].value(value) for name, value in given.items()}


def convert(value: Any, hint: Any, what: str, text: bool = False) -> Any:
    """Return a value (or, with `text`, its text) as the type that a hint names."""
    if hint is Any:
        return value
    origin = typing.get_origin(hint)
    if origin is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            value_text = value if isinstance(value, str) else shown(value)
            raise unknown(f"value of {what}", value_text, map(str, choices))
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None or (text and value == "none"):
            return None
        first = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        return convert(value, first, what, text)
    expectation, read = _READERS[hint]
    try:
        return read(value, text)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{what} must be {expectation}, not {shown(value)}") from None


def _whole(value: Any, text: bool) -> int:
    if isinstance(value, bool):
        raise TypeError
    return int(value) if text else operator.index(value)


def _number(value: Any, text: bool) -> float:
    if isinstance(value, bool) or (isinstance(value, str) and not text):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _truth(value: Any, text: bool) -> bool:
    if text and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: Any, text: bool) -> str:
    if callable(getattr(value, "text", None)):  # a memory as a value: Reservoir(2000)
        value = value.text()
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: Any, text: bool) -> Path:
    name = os.fsencode(value)
    if not name or b"\0" in name or len(name) > PATH or max(map(len, name.split(b"/"))) > NAME:
        raise ValueError
    return Path(value).expanduser()


_READERS: dict[Any, tuple[str, Callable[[Any, bool], Any]]] = {
    int: ("a whole number", _whole),
    float: ("a finite number", _number),
    bool: ("true or false", _truth),
    str: ("text", _text),
    Path: ("a path", _path),
}


def shown(value: Any) -> str:
    """Return a value for an error line: one line, cut to a readable length."""
    try:
        text = f"{value:g}" if isinstance(value, float) else " ".join(repr(value).split())
    except ValueError:  # Python writes no number of more than 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def between(least: float, most: float) -> Check:
    """Require a number from `least` to `most`."""

    def check(value: float) -> str | None:
        if value < least:
            return f"at least {least:g}"
        return f"at most {most:,}" if value > most else None

    return check


def above(least: float, most: float = math.inf) -> Check:
    """Require a number above `least` and, if given, at most `most`."""

    def check(value: float) -> str | None:
        limit = f" and at most {most:g}" if most < math.inf else ""
        return None if least < value <= most else f"above {least:g}{limit}"

    return check


def from_to_below(least: float, limit: float) -> Check:
    """Require a number of at least `least` and below `limit`."""
    expectation = f"at least {least:g} and below {limit:g}"
    return lambda value: None if least <= value < limit else expectation


P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R")


class keywords_of(Generic[P]):  # noqa: N801 (used as a decorator)
    """Give a function the keywords of a dataclass, in its signature and for type checkers.

    @keywords_of(Options).after_two
    def run(benchmark, method, **options): ...
    """

    def __init__(self, described: Callable[P, object]) -> None:
        self._described = described

    def after_one(
        self, function: Callable[Concatenate[A, ...], R]
    ) -> Callable[Concatenate[A, P], R]:
        signed: Callable[Concatenate[A, P], R] = self._signed(function)
        return signed

    def after_two(
        self, function: Callable[Concatenate[A, B, ...], R]
    ) -> Callable[Concatenate[A, B, P], R]:
        signed: Callable[Concatenate[A, B, P], R] = self._signed(function)
        return signed

    def _signed(self, function: Any) -> Any:
        signature = inspect.signature(function)
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        first = [p for p in signature.parameters.values() if p.kind not in kinds]
        described = inspect.signature(self._described).parameters.values()
        known = options(typing.cast(type, self._described))
        keywords = [
            p.replace(
                kind=inspect.Parameter.KEYWORD_ONLY,
                default=known[p.name].default if p.name in known else p.default,
            )
            for p in described
        ]
        function.__signature__ = signature.replace(parameters=[*first, *keywords])
        return function
