"""Components: objectives and routines, found by name, with their options as dataclass fields.

A component is a dataclass that says its name where it is defined:

    @dataclass
    class Gem(Routine, name="gem"):
        gamma: float = 0.5

Defining it registers it, inside the package or outside, and `gem(gamma=0.1)` or `gem(0.1)` makes
one. Two wrong things in an option (its name, its value) are told apart and answered in one line.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

from twofold.errors import UserError, unknown


class Component:
    """What objectives and routines share: a name, options, and a kind to be found under."""

    name: ClassVar[str]
    kind: ClassVar[str]
    known: ClassVar[dict[str, type[Component]]]
    families: ClassVar[dict[str, Callable[[str], type[Component]]]]  # `torchjd:UPGrad` is of one
    context: ClassVar[tuple[str, ...]] = ()  # attributes that a run sets, not the component

    def __init_subclass__(cls, *, name: str | None = None, kind: str | None = None) -> None:
        super().__init_subclass__()
        if kind is not None:  # Objective and Routine themselves: each starts a registry
            cls.kind, cls.known, cls.families = kind, {}, {}
        if name is not None:
            register(cls.kind, cls.known, name, cls)
            cls.name = name

    @classmethod
    def knows(cls, name: str) -> bool:
        """Whether `name` is, or would be, one of this kind."""
        return name in cls.known or name.partition(":")[0] in cls.families

    @classmethod
    def find(cls, name: str) -> type[Self]:
        """The component of this kind with this name."""
        family, _, member = name.partition(":")
        if family in cls.families:
            return cast(type[Self], cls.families[family](member))
        if name not in cls.known:
            families = [f"{family}:NAME" for family in cls.families]
            error = unknown(cls.kind, name, [*cls.known, *families])
            raise UserError(f"{error}; your own: --plugin FILE.py")
        return cast(type[Self], cls.known[name])

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """The options by name: the dataclass fields that `__init__` takes, in order."""
        fields = getattr(cls, "__dataclass_fields__", {})  # none without the decorator: no options
        return {f.name: f for f in fields.values() if f.init}

    @classmethod
    def make(cls, options: dict[str, Any]) -> Self:
        """One with these options, each checked against its field's type."""
        hints = _hints(cast(type, cls))
        known = cls.options()
        for key in options:
            if key not in known:
                raise unknown(f"option of {cls.name}", key, known)
        for key, option in known.items():
            default = (option.default, option.default_factory)
            if key not in options and default == (MISSING, MISSING):
                raise UserError(f"{cls.name} needs its option {key}: {cls.name}({key}=...)")
        return cls(**{k: _convert(v, hints[k], f"{cls.name}'s {k}") for k, v in options.items()})

    def explicit(self) -> dict[str, Any]:
        """All options with the values they have: what a run records."""
        return {key: getattr(self, key) for key in self.options()}

    def state(self) -> dict[str, Any]:
        """What it keeps between iterations: its attributes that are neither options nor context.

        They must be tensors, arrays or plain data; override this where they are not.
        """
        return {k: v for k, v in vars(self).items() if k not in {*self.options(), *self.context}}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with what `state` gave."""
        vars(self).update(state)


def register(kind: str, known: dict[str, Any], name: str, cls: type) -> None:
    """`known[name] = cls`, unless another file has the name: its own would be gone unnoticed."""
    if name in known and _sources(known[name]).isdisjoint(_sources(cls)):
        article = "an" if kind[0] in "aeiou" else "a"
        raise UserError(f"there is {article} {kind} {name!r} already: choose another name")
    known[name] = cls


def _sources(cls: type) -> set[str]:
    """Its module, that one's file, and a plugin's text: a file may be executed anew, as a script
    and as a plugin, and copied to the nodes of a cluster.
    """
    module = sys.modules.get(cls.__module__)
    file, text = getattr(module, "__file__", None), getattr(module, "__digest__", None)
    names = (cls.__module__, file and str(Path(file).resolve()), text)
    return {name for name in names if name}


def require(condition: bool, message: str) -> None:
    """For `__post_init__`: an option out of its range is the user's to mend."""
    if not condition:
        raise UserError(message)


_hints = cache(typing.get_type_hints)  # reading them takes a millisecond, and a study asks often


def _convert(value: Any, hint: Any, what: str) -> Any:
    """The text (or value) of an option as its field's type."""
    origin = typing.get_origin(hint)
    if origin is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise unknown(f"value of {what}", str(value), map(str, choices))
        return value
    if origin in (typing.Union, types.UnionType):
        if value in (None, "none"):
            return None
        (hint,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return _convert(value, hint, what)
    if hint is bool:
        if str(value).lower() not in ("true", "false"):
            raise UserError(f"{what} must be true or false, not {value!r}")
        return str(value).lower() == "true"
    try:
        converted = hint(value)
    except (TypeError, ValueError):
        wanted = {int: "a whole number", float: "a number"}.get(hint, hint.__name__)
        raise UserError(f"{what} must be {wanted}, not {value!r}") from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise UserError(f"{what} must be a finite number, not {value!r}")
    return converted


def plain(value: Any) -> str:
    """An option's value as it is written: none, true, 0.5."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


@dataclass(frozen=True)
class Part:
    """One part of a method as written: a component's name and the options given to it."""

    name: str
    positional: tuple[str, ...] = ()
    named: dict[str, str] = field(default_factory=dict)

    def given(self, cls: type[Component]) -> dict[str, str]:
        """The options as a mapping; positional ones take the fields in order."""
        names = list(cls.options())
        if len(self.positional) > len(names):
            most = f"{len(names)} option{'s' if len(names) > 1 else ''}: {', '.join(names)}"
            said = f"takes at most {most}" if names else "has no options"
            raise UserError(f"{self.name} {said}")
        given = dict(zip(names, self.positional, strict=False))
        for key, value in self.named.items():
            if key in given:
                raise UserError(f"{self.name} has its option {key!r} twice")
            given[key] = value
        return given


def split_parts(text: str) -> list[Part]:
    """`er+gem(0.1, when=always)` as its parts. A `+` or `,` inside brackets belongs there."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text + "+"):
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            parts.append(_part(text[start:position].strip(), text))
            start = position + 1
    if depth != 0:
        raise UserError(f"method {text!r}: brackets don't match; write er+gem(gamma=0.5)")
    return parts


def _part(text: str, method: str) -> Part:
    name, bracket, rest = text.partition("(")
    if not name or (bracket and not rest.endswith(")")):
        raise UserError(f"method {method!r}: can't read {text!r}; write er+gem(gamma=0.5)")
    positional: list[str] = []
    named: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in rest[:-1].split(","))):
        key, equals, value = (s.strip() for s in item.partition("="))
        if not equals:
            if named:
                raise UserError(f"method {method!r}: {key!r} must come before the named options")
            positional.append(key)
        elif key in named:
            raise UserError(f"{name} has its option {key!r} twice")
        else:
            named[key] = value
    return Part(name.strip(), tuple(positional), named)
