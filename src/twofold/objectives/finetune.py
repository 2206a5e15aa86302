"""Continual finetuning: the loss on the new task alone."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.objectives.base import Draw, Objective, Pass, Term, cross_entropy


@dataclass
class Finetune(Objective, name="finetune"):
    """l_new. With a routine that uses the memory this is GEM or A-GEM as first published."""

    label = "Finetune"

    def passes(self, draw: Draw) -> list[Pass]:
        return [[Term("new", 1.0, draw.new.x, cross_entropy(draw.new.y))]]
