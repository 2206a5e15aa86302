"""A method: an objective, the terms added to it, and the routines that follow its gradient.

It is written as text, `er+gem(gamma=0.5)`, or as a value, `Er() + Gem(gamma=0.5)`, in any order.
Routines act in the order written.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from twofold.component import Component, plain
from twofold.errors import UserError, unknown
from twofold.options import shown

if TYPE_CHECKING:
    from twofold.objectives import Objective
    from twofold.routines import Routine
    from twofold.terms import Addition

Options = dict[str, Any]
Written = tuple[type[Component], Options]  # a component and the options that were given

EXAMPLE = "write er+gem(gamma=0.5)"
IMPLIED_OBJECTIVE, IMPLIED_ROUTINE = "finetune", "sgd"  # `gem` is finetune+gem, `er` is er+sgd


class Part(Component):
    """A component of methods. `+` combines it with further components."""

    def __add__(self, other: object) -> Method:
        return Method.of(self, other)

    def __radd__(self, other: object) -> Method:  # of what is no component, which `of` refuses
        return Method.of(other, self)


@dataclass(frozen=True)
class Method:
    """Component classes with the options that were given, in the order written."""

    objective: Written
    routines: tuple[Written, ...]
    terms: tuple[Written, ...] = ()

    @classmethod
    def of(cls, *parts: object) -> Method:
        """Combine components and methods, of which one at most has an objective."""
        written: list[Written] = []
        for part in parts:
            if isinstance(part, Method):
                implied = part.objective == _implied()
                written += [] if implied else [part.objective]
                written += [*part.terms, *part.routines]
            elif isinstance(part, Part):
                written.append((type(part), part.given))
            else:
                raise UserError(
                    f"a method consists of an objective and routines, such as Er() + Gem(), "
                    f"not of {_described(part)}"
                )
        return cls._ordered(written)

    @classmethod
    def parse(cls, text: str) -> Method:
        """Read `er+gem(gamma=0.5)`; `gem` alone means `finetune+gem`, and `er` means `er+sgd`."""
        pieces = split_text(text)
        known = [kind(name) for name in ("objective", "routine", "term")]
        written: list[Written] = []
        for place, piece in enumerate(pieces):
            kinds = [each for each in known if each.knows(piece.name)]
            if not kinds and place == 0:
                raise unknown("method", piece.name, [name for each in known for name in each.known])
            if not kinds:
                raise Component.unknown(piece.name, known[1:])
            component = kinds[0].find(piece.name)
            written.append((component, piece.options(component)))
        return cls._ordered(written)

    @classmethod
    def read(cls, method: object) -> Method:
        """Return a method from its text, from a component or from itself."""
        return cls.parse(method) if isinstance(method, str) else cls.of(method)

    @classmethod
    def _ordered(cls, written: list[Written]) -> Method:
        """Return the method of these components, with one objective and each term once."""
        text = "+".join(component.name for component, _ in written)
        objectives, terms, routines = (
            [each for each in written if each[0].kind == name]
            for name in ("objective", "term", "routine")
        )
        if len(objectives) > 1:
            raise UserError(
                f"method {text!r}: {objectives[1][0].name!r} is a second objective, and a method "
                "has one"
            )
        names = [component.name for component, _ in terms]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"method {text!r}: {name} is there twice: leave one out")
        terms.sort(key=lambda each: each[0].name)  # a sum has no order
        routines = [each for each in routines if each[0].name != IMPLIED_ROUTINE]
        objective = objectives[0] if objectives else _implied()
        for component, options in (objective, *terms, *routines):
            component.make(options)  # this checks the range of options
        return cls(objective, tuple(routines), tuple(terms))

    def __add__(self, other: object) -> Method:
        return Method.of(self, other)

    def __str__(self) -> str:
        return self.text()

    def make(self, more: Mapping[str, Options] | None = None) -> tuple[Objective, list[Routine]]:
        """Return new components; the objective has the terms that are added to it.

        more: defaults of options by component name.
        """
        objective, *parts = (
            component.make({**(more or {}).get(component.name, {}), **given})
            for component, given in (self.objective, *self.terms, *self.routines)
        )
        count = len(self.terms)
        made = cast("Objective", objective)
        made.terms = cast("list[Addition]", parts[:count])
        return made, cast("list[Routine]", parts[count:])

    def text(self, more: Mapping[str, Options] | None = None) -> str:
        """Return the shortest text that means the same.

        It leaves out options that have their default, from the component or from `more`.
        """
        written = (self.objective, *self.terms, *self.routines)
        parts = [_text(cls, given, more or {}) for cls, given in written]
        if len(parts) > 1 and parts[0] == IMPLIED_OBJECTIVE:
            parts = parts[1:]
        return "+".join(parts)


def _implied() -> Written:
    return kind("objective").find(IMPLIED_OBJECTIVE), {}


def kind(name: str) -> type[Component]:
    """Return Objective, Addition or Routine by kind, after importing all such components."""
    importlib.import_module(f"twofold.{name}s")
    return Component.kinds[name]


def _described(part: object) -> str:
    if isinstance(part, type) and issubclass(part, Component):
        return f"the class {part.__name__}: write {part.__name__}()"
    return shown(part)


def _text(cls: type[Component], given: Options, more: Mapping[str, Options]) -> str:
    defaults = {key: option.default for key, option in cls.options().items()}
    defaults |= more.get(cls.name, {})
    options = [
        f"{key}={plain(given[key])}"
        for key in defaults
        if given.get(key, defaults[key]) != defaults[key]
    ]
    return f"{cls.name}({','.join(options)})" if options else cls.name


@dataclass(frozen=True)
class Piece:
    """One component as text: its name and the texts of its options."""

    name: str
    positional: tuple[str, ...] = ()
    named: dict[str, str] = field(default_factory=dict)

    def options(self, cls: type[Component]) -> Options:
        """Return the options that were given, as the types of their fields."""
        given = cls.merged(cls.named(self.positional), self.named)
        return cls.checked(given, text=True)


def split_text(text: str, what: str = "method", example: str = EXAMPLE) -> list[Piece]:
    """Split `er+gem(0.1, when=always)` into its components. Brackets keep `+` and `,` together.

    what, example: the kind of text and how to write it, for error messages.
    """
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text + "+"):
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            parts.append(_piece(text[start:position].strip(), f"{what} {text!r}", example))
            start = position + 1
    if depth != 0:
        raise UserError(f"{what} {text!r}: brackets don't match; {example}")
    return parts


def _piece(text: str, whole: str, example: str) -> Piece:
    name, bracket, rest = text.partition("(")
    if not name or (bracket and not rest.endswith(")")):
        raise UserError(f"{whole}: can't read {text!r}; {example}")
    positional: list[str] = []
    named: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in rest[:-1].split(","))):
        key, equals, value = (s.strip() for s in item.partition("="))
        if not equals:
            if named:
                raise UserError(f"{whole}: {key!r} must come before the named options")
            positional.append(key)
        elif key in named:
            raise UserError(f"{name} has its option {key!r} twice")
        else:
            named[key] = value
    return Piece(name.strip(), tuple(positional), named)
