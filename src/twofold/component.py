"""Components: objectives, terms, routines and memories, found by name.

Their options are dataclass fields.

A component is a dataclass that states its name where it is defined:

    @dataclass
    class Gem(Routine, name="gem"):
        gamma: float = 0.5

Its definition registers it, inside the package or outside. `Gem(gamma=0.1)` is the value, and
`gem(gamma=0.1)` or `gem(0.1)` is the text of the same component. A wrong name or a wrong value of
an option gives an error of one line.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

from twofold.errors import UserError, unknown
from twofold.options import convert, shown

LARGEST = 10**9  # of a number: a larger count is a mistake, and a larger factor soon overflows
LATER = "later"
GIVEN = "_given"  # the attribute with the options that a component was written with


def later(default: Any) -> Any:
    """Return the field of an option that a component got after runs of it were stored.

    The identities of these runs stay as they are.
    """
    return dataclasses.field(default=default, metadata={LATER: True})


class Component:
    """The base of objectives, terms, routines and memories, with a name, options and a kind."""

    name: ClassVar[str]
    label: ClassVar[str] = ""  # the name in tables and figures, such as A-GEM (default: `name`)
    kind: ClassVar[str]
    known: ClassVar[dict[str, type[Component]]]
    families: ClassVar[dict[str, Callable[[str], type[Component]]]]  # for `torchjd:UPGrad`
    context: ClassVar[tuple[str, ...]] = ()  # attributes that a run sets, not the component
    kinds: ClassVar[dict[str, type[Component]]] = {}  # Objective and Routine themselves

    def __init_subclass__(cls, *, name: str | None = None, kind: str | None = None) -> None:
        super().__init_subclass__()
        if kind is not None:  # Objective and Routine themselves: each starts a registry
            cls.kind, cls.known, cls.families = kind, {}, {}
            Component.kinds[kind] = cls
        if name is not None:
            register(cls.kind, cls.known, name, cls)
            cls.name = name

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Record which options were given, since a profile may set the others."""
        component = super().__new__(cls)
        if hasattr(cls, "__dataclass_fields__"):
            vars(component)[GIVEN] = cls.checked(cls.merged(cls.named(args), options))
        return component

    @classmethod
    def knows(cls, name: str) -> bool:
        """Tell whether `name` is, or would be, a component of this kind."""
        return name in cls.known or name.partition(":")[0] in cls.families

    @staticmethod
    def unknown(name: str, kinds: Sequence[type[Component]]) -> UserError:
        """Return the error for a name that no component of these kinds has."""
        names = [name for kind in kinds for name in kind.known]
        names += [f"{family}:NAME" for kind in kinds for family in kind.families]
        error = unknown(" or ".join(kind.kind for kind in kinds), name, names)
        return UserError(f"{error}; define your own in a plugin")

    @classmethod
    def find(cls, name: str) -> type[Self]:
        """Return the component of this kind with this name."""
        family, _, member = name.partition(":")
        if family in cls.families:
            return cast(type[Self], cls.families[family](member))
        if name not in cls.known:
            raise cls.unknown(name, [cls])
        return cast(type[Self], cls.known[name])

    @classmethod
    def options(cls) -> Mapping[str, dataclasses.Field[Any]]:
        """Return the options by name: the dataclass fields that `__init__` takes, in order.

        Options that are written by name only come last.
        """
        return _options(cast(type, cls))

    @classmethod
    def named(cls, positional: tuple[Any, ...]) -> dict[str, Any]:
        """Return positional options by name."""
        names = list(cls.options())
        if len(positional) > len(names):
            most = f"{len(names)} option{'s' if len(names) > 1 else ''}: {', '.join(names)}"
            raise UserError(
                f"{cls.name} takes at most {most}" if names else f"{cls.name} has no options"
            )
        return dict(zip(names, positional, strict=False))

    @classmethod
    def merged(cls, positional: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
        """Return both together; an option may be written once."""
        for key in named:
            if key in positional:
                raise UserError(f"{cls.name} has its option {key!r} twice")
        return {**positional, **named}

    @classmethod
    def checked(cls, options: dict[str, Any], text: bool = False) -> dict[str, Any]:
        """Return options as the types of their fields; with `text`, from text."""
        known, hints = cls.options(), _hints(cast(type, cls))
        for key in options:
            if key not in known:
                raise unknown(f"option of {cls.name}", key, known)
        return {k: convert(v, hints[k], f"{cls.name}'s {k}", text) for k, v in options.items()}

    @classmethod
    def make(cls, options: dict[str, Any]) -> Self:
        """Return a fresh component with these options."""
        for key, option in cls.options().items():
            default = (option.default, option.default_factory)
            if key not in options and default == (MISSING, MISSING):
                raise UserError(f"{cls.name} needs its option {key}: {cls.name}({key}=...)")
        return cls(**cls.checked(options))

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return dict(vars(self).get(GIVEN, {}))

    def explicit(self) -> dict[str, Any]:
        """Return all options with their values, as a run records them.

        A `later` option is left out while it has its default, as in runs from before it was there.
        """
        values = {key: (getattr(self, key), option) for key, option in self.options().items()}
        return {
            key: value
            for key, (value, option) in values.items()
            if LATER not in option.metadata or value != option.default
        }

    def state(self) -> dict[str, Any]:
        """Return the state between iterations: all attributes except for options and context.

        They must be tensors, arrays or plain data; otherwise, override this method.
        """
        excluded = {GIVEN, *self.options(), *self.context}
        return {key: value for key, value in vars(self).items() if key not in excluded}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state that `state` returned."""
        vars(self).update(state)


def register(kind: str, known: dict[str, Any], name: str, cls: type) -> None:
    """Set `known[name] = cls`, unless a different file has the name."""
    if name in known and _sources(known[name]).isdisjoint(_sources(cls)):
        article = "an" if kind[0] in "aeiou" else "a"
        raise UserError(f"there is {article} {kind} {name!r} already: choose a different name")
    known[name] = cls


def _sources(cls: type) -> set[str]:
    """Return the module of a class, the file of the module, and the text of a plugin.

    A file can be executed twice, as a script and as a plugin, and be copied to nodes of a cluster.
    """
    module = sys.modules.get(cls.__module__)
    file, text = getattr(module, "__file__", None), getattr(module, "__digest__", None)
    names = (cls.__module__, file and str(Path(file).resolve()), text)
    return {name for name in names if name}


def require(condition: bool, message: str) -> None:
    """Raise UserError unless the condition holds. Use it in `__post_init__` to check options."""
    if not condition:
        raise UserError(message)


def require_at_most(component: Component, *names: str, most: float = LARGEST) -> None:
    """Raise UserError if one of these options is larger than `most`. None is not."""
    for name in names:
        value = getattr(component, name)
        require(
            value is None or value <= most,
            f"{component.name}'s {name} must be at most {most:,}, not {shown(value)}",
        )


_hints = cache(typing.get_type_hints)  # it takes a millisecond and is called often


@cache  # a page asks tens of thousands of times
def _options(cls: type) -> Mapping[str, dataclasses.Field[Any]]:
    if not hasattr(cls, "__dataclass_fields__"):  # without the decorator there are no options
        return MappingProxyType({})
    ordered = sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only))
    return MappingProxyType({field.name: field for field in ordered if field.init})


def plain(value: Any) -> str:
    """Return an option's value as it is written: none, true, 0.5."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
