"""What there is: benchmarks, objectives and routines with their options, as text."""

from __future__ import annotations

import inspect

from twofold.benchmarks import Recipe
from twofold.component import Component
from twofold.objectives import Objective
from twofold.routines import Routine


def listing() -> str:
    width = max(map(len, Recipe.known)) + 2
    lines = ["benchmarks"]
    lines += [f"  {name:{width}}{recipe.about}" for name, recipe in sorted(Recipe.known.items())]
    for kind, title in ((Objective, "objectives, the what"), (Routine, "routines, the how")):
        lines += ["", title]
        lines += [line for _, cls in sorted(kind.known.items()) for line in _component(cls, width)]
    lines += ["", "A method is an objective and routines: er+gem(gamma=0.5). gem is finetune+gem."]
    return "\n".join(lines)


def _component(cls: type[Component], width: int) -> list[str]:
    """The name with the docstring's first line, then the options as their docs say."""
    about = inspect.cleandoc(cls.__doc__ or "").splitlines() or [""]
    lines = [f"  {cls.name:{width}}{about[0]}"]
    for name, option in cls.options().items():
        lines.append(f"  {'':{width}}  {name}={option.default}")
    return lines
