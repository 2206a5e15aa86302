"""The list of benchmarks, objectives and routines with their options, as text."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Literal

from twofold.benchmarks import Recipe
from twofold.component import Component, plain
from twofold.memories import Memory
from twofold.objectives import Objective
from twofold.routines import Routine
from twofold.terms import Addition

WIDTH = 22


def listing() -> str:
    lines = ["benchmarks"]
    lines += [f"  {name:{WIDTH}}{recipe.about}" for name, recipe in sorted(Recipe.known.items())]
    titles: list[tuple[type[Component], str]] = [
        (Objective, "objectives, the what"),
        (Addition, "terms, which are added to any objective"),
        (Routine, "routines, the how"),
        (Memory, "memories, for --memory"),
    ]
    for kind, title in titles:
        lines += ["", title]
        lines += [line for _, cls in sorted(kind.known.items()) for line in _component(cls)]
        lines += [
            f"  {f'{name}:NAME':{WIDTH}}{inspect.cleandoc(f.__doc__ or '').splitlines()[0]}"
            for name, f in kind.families.items()
        ]
    lines += [
        "",
        "A method is an objective, terms and routines: er+decay(1e-5)+gem(gamma=0.5). "
        "gem is finetune+gem.",
    ]
    return "\n".join(lines)


def _component(cls: type[Component]) -> list[str]:
    """Return the name with the docstring's first line, then a line per option."""
    about = inspect.cleandoc(cls.__doc__ or "")
    every = "\n".join(inspect.cleandoc(each.__doc__ or "") for each in cls.__mro__)
    lines = [f"  {cls.name:{WIDTH}}{about.splitlines()[0] if about else ''}"]
    hints = typing.get_type_hints(cls)
    for name, option in cls.options().items():
        choices = typing.get_args(hints[name]) if typing.get_origin(hints[name]) is Literal else ()
        value = plain(option.default) + (f" ({'|'.join(choices)})" if choices else "")
        lines.append(f"{f'    {name}={value}':{2 * WIDTH + 4}} {_said_of(name, every)}")
    return [line.rstrip() for line in lines]


def _said_of(option: str, about: str) -> str:
    """Return the first sentence about an option in its component's docstring."""
    match = re.search(rf"^{option}: (.*?)(?=^\S|\Z)", about, re.MULTILINE | re.DOTALL)
    text = " ".join(match[1].split()) if match else ""
    return re.split(r"(?<=[a-z)])[.;:](?: |$)", text)[0]
