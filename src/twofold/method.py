"""A method: an objective and the routines that follow its gradient, written `er+gem(gamma=0.5)`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from twofold.benchmarks.base import Scenario
from twofold.component import Component, Part, plain, split_parts
from twofold.errors import UserError, unknown
from twofold.objectives import Objective
from twofold.routines import Needs, Routine

Options = dict[str, Any]
C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Method:
    """What was asked for: component classes with the options given, in the order written."""

    objective: tuple[type[Objective], Options]
    routines: tuple[tuple[type[Routine], Options], ...]

    @classmethod
    def parse(cls, text: str) -> Method:
        """`gem` alone means `finetune+gem`; `er` means `er+sgd`."""
        first, *rest = split_parts(text)
        if not Objective.knows(first.name):
            if not Routine.knows(first.name):
                raise unknown("method", first.name, [*Objective.known, *Routine.known])
            first, rest = Part("finetune"), [first, *rest]
        for part in rest:
            if Objective.knows(part.name):
                raise UserError(
                    f"method {text!r}: {part.name!r} is an objective, and a method has one, "
                    "written first"
                )
        objective = _given(Objective.find(first.name), first)
        routines = [_given(Routine.find(part.name), part) for part in rest]
        return cls(objective, tuple(part for part in routines if part[0].name != "sgd"))

    def make(self, more: Mapping[str, Options] | None = None) -> tuple[Objective, list[Routine]]:
        """The components, fresh. `more` are options by component name, for what was not given."""
        more = more or {}
        objective, given = self.objective
        return (
            objective.make({**more.get(objective.name, {}), **given}),
            [cls.make({**more.get(cls.name, {}), **given}) for cls, given in self.routines],
        )

    def text(self, more: Mapping[str, Options] | None = None) -> str:
        """The shortest text that means the same: without options that say what holds anyway.

        That is a component's default, or what `more` says.
        """
        parts = [_text(cls, given, more or {}) for cls, given in (self.objective, *self.routines)]
        if self.routines and parts[0] == "finetune":
            parts = parts[1:]
        return "+".join(parts)


def _given(cls: type[C], part: Part) -> tuple[type[C], Options]:
    """The options that were given, as their fields' types."""
    given = part.given(cls)
    made = cls.make(given)
    return cls, {key: getattr(made, key) for key in given}


def _text(cls: type[Component], given: Options, more: Mapping[str, Options]) -> str:
    anyway = {key: option.default for key, option in cls.options().items()}
    anyway |= more.get(cls.name, {})
    shown = [
        f"{key}={plain(given[key])}" for key in anyway if given.get(key, anyway[key]) != anyway[key]
    ]
    return f"{cls.name}({','.join(shown)})" if shown else cls.name


def needs_of(routines: Sequence[Routine]) -> Needs:
    """What a chain asks for: all that any of its routines does."""
    return functools.reduce(operator.or_, (routine.asks() for routine in routines), Needs.NOTHING)


def uses_memory(objective: Objective, routines: Sequence[Routine]) -> bool:
    """Whether the method uses a memory."""
    return objective.replays != "nothing" or bool(needs_of(routines) & Needs.REPLAY)


def check_method(
    objective: Objective,
    routines: list[Routine],
    scenario: Scenario,
    memory_per_class: int,
    momentum: float,
) -> None:
    """Raise UserError where a method can't be used so."""
    objective.check(scenario, memory_per_class)
    for place, routine in enumerate(routines):
        routine.check(routines[:place], momentum)
    needs = needs_of(routines)
    if Needs.OLD in needs and Needs.FROZEN_OLD in needs:
        raise UserError(
            "routines of one method must agree on the old-data gradient: "
            "all with agem's reference=objective, or all with frozen"
        )
    if uses_memory(objective, routines) and not objective.stores_all and memory_per_class == 0:
        raise UserError("this method replays, but with --memory-per-class 0 memory stays empty")
