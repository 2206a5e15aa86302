"""Experience replay: the joint loss, with old data approximated by the memory (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twofold.component import later
from twofold.objectives.base import Draw, Objective, Pass, Term, cross_entropy


@dataclass
class Er(Objective, name="er"):
    """Experience replay: 1/t l_new + (1 - 1/t) l_old, with l_old on b examples of the memory.

    classes: the softmax is over `all` outputs (the paper), or over the classes `seen` so far.
    """

    classes: Literal["all", "seen"] = later("all")

    label = "ER"
    replays = "total"

    def passes(self, draw: Draw) -> list[Pass]:
        seen = self.classes_until(draw.task) if self.classes == "seen" else None
        loss = cross_entropy(draw.new.y, seen)
        new = Term("new", 1 / draw.task, draw.new.x, loss, draw.new.tasks)
        if draw.old is None:
            return [[new]]
        loss = cross_entropy(draw.old.y, seen)
        old = Term("old", 1 - 1 / draw.task, draw.old.x, loss, draw.old.tasks)
        return [[new, old]]
