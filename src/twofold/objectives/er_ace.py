"""ER-ACE (Caccia et al., 2022): new data compete among their own classes only.

    L = CE(new; classes of the batch) + CE(old; classes seen so far)

The softmax of new examples is over the classes in their batch, so that they do not push old classes
down. Old and new classes are compared in replayed examples only, so the memory must hold both.
"""

from __future__ import annotations

from dataclasses import dataclass

from twofold.choices import Scenario
from twofold.errors import UserError
from twofold.objectives.base import Draw, Objective, Pass, Term, cross_entropy


@dataclass
class ErAce(Objective, name="er-ace"):
    """Experience replay with an asymmetric cross-entropy, for class-incremental benchmarks."""

    label = "ER-ACE"
    replays = "total"
    needs_current = True

    def check(self, scenario: Scenario, memory_per_class: int) -> None:
        if scenario != "class":
            raise UserError(
                "er-ace keeps new classes from pushing old ones down, so it needs a "
                "class-incremental benchmark (split-cifar100, split-mini-imagenet), not a "
                f"{scenario}-incremental one"
            )

    def passes(self, draw: Draw) -> list[Pass]:
        if draw.old is None:
            return [[Term("new", 1.0, draw.new.x, cross_entropy(draw.new.y))]]
        among = cross_entropy(draw.new.y, draw.new.y.unique())
        seen = cross_entropy(draw.old.y, self.classes_until(draw.task))
        return [[Term("new", 1.0, draw.new.x, among), Term("old", 1.0, draw.old.x, seen)]]
