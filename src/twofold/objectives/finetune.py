"""Continual finetuning: the loss on the new task alone."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.objectives.base import Draw, Objective, Pass, Term, cross_entropy


@dataclass
class Finetune(Objective, name="finetune"):
    """The loss l_new alone. With GEM or A-GEM as the routine, it is that method as published."""

    label = "Finetune"

    def passes(self, draw: Draw) -> list[Pass]:
        return [[Term("new", 1.0, draw.new.x, cross_entropy(draw.new.y), draw.new.tasks)]]
