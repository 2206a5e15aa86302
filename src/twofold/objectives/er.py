"""Experience replay: the joint loss, with old data approximated by the memory (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.objectives.base import Draw, Objective, Pass, Term, cross_entropy


@dataclass
class Er(Objective, name="er"):
    """Experience replay: 1/t l_new + (1 - 1/t) l_old, with l_old on b examples of the memory."""

    label = "ER"
    replays = "total"

    def passes(self, draw: Draw) -> list[Pass]:
        new = Term("new", 1 / draw.task, draw.new.x, cross_entropy(draw.new.y))
        if draw.old is None:
            return [[new]]
        return [[new, Term("old", 1 - 1 / draw.task, draw.old.x, cross_entropy(draw.old.y))]]
