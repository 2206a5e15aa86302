"""A method: an objective and the routines that follow its gradient, written `er+gem(gamma=0.5)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twofold.component import Component, Part, split_parts
from twofold.errors import UserError, unknown
from twofold.objectives import Objective
from twofold.routines import Routine

Options = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """What was asked for: component classes with the options given, in the order written."""

    objective: tuple[type[Objective], Options]
    routines: tuple[tuple[type[Routine], Options], ...]

    @classmethod
    def parse(cls, text: str) -> Method:
        """`gem` alone means `finetune+gem`; `er` means `er+sgd`."""
        first, *rest = split_parts(text)
        if first.name not in Objective.known:
            if first.name not in Routine.known:
                raise unknown("method", first.name, [*Objective.known, *Routine.known])
            first, rest = Part("finetune"), [first, *rest]
        for part in rest:
            if part.name in Objective.known:
                raise UserError(
                    f"method {text!r}: {part.name!r} is an objective, and a method has one, "
                    "written first"
                )
        method = cls(
            _component(Objective, first, "objective"),  # type: ignore[arg-type]
            tuple(_component(Routine, part, "routine") for part in rest if part.name != "sgd"),  # type: ignore[misc]
        )
        method.make()  # so that wrong options are found now
        return method

    def make(self, more: Mapping[str, Options] | None = None) -> tuple[Objective, list[Routine]]:
        """The components, fresh. `more` are options by component name, for what was not given."""
        more = more or {}
        (objective, given), *_ = [self.objective]
        return (
            objective.make({**more.get(objective.name, {}), **given}),
            [cls.make({**more.get(cls.name, {}), **given}) for cls, given in self.routines],
        )

    def __str__(self) -> str:
        """The shortest text that means the same: `finetune+gem` is `gem`, defaults are left out."""
        parts = [_text(cls, given) for cls, given in (self.objective, *self.routines)]
        if self.routines and parts[0] == "finetune":
            parts = parts[1:]
        return "+".join(parts)


def _component(kind: type[Component], part: Part, word: str) -> tuple[type[Component], Options]:
    if part.name not in kind.known:
        raise unknown(word, part.name, kind.known)
    cls = kind.known[part.name]
    made = cls.make(part.given(cls))
    return cls, {key: getattr(made, key) for key in part.given(cls)}


def _text(cls: type[Component], given: Options) -> str:
    shown = [
        f"{key}={_plain(given[key])}"
        for key, option in cls.options().items()
        if key in given and given[key] != option.default
    ]
    return f"{cls.name}({','.join(shown)})" if shown else cls.name


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
