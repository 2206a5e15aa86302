"""What a routine is, and what one iteration hands to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import ClassVar

from torch import Tensor

from twofold.component import Component
from twofold.models.flat import FlatModel


class Needs(Flag):
    """What a routine asks of an iteration beyond the objective's gradient.

    A run computes only what its routines ask for.
    """

    NOTHING = 0
    OLD = auto()  # g_old, the gradient of the objective's own old-data loss
    FROZEN_OLD = auto()  # the replay batch's gradient from a pass of its own, batch norm frozen
    PER_TASK = auto()  # G, one reference gradient a past task, batch norm frozen


@dataclass
class Step:
    """One iteration as a routine sees it. All gradients are vectors as long as `net.values`."""

    task: int  # t, counted from 1
    iteration: int  # n within the task, counted from 1
    net: FlatModel
    old: Tensor | None = None  # g_old, for Needs.OLD and Needs.FROZEN_OLD; None in task 1
    references: Tensor | None = None  # G, a row a past task, for Needs.PER_TASK; None in task 1
    losses: dict[str, Tensor] = field(default_factory=dict)  # "new" and, where replayed, "old"
    log: dict[str, Tensor | float] = field(default_factory=dict)  # recorded with the curves


class Routine(Component, kind="routine"):
    """The "how". Subclass it, overriding only what you need; see docs/architecture.md.

    In every iteration the loop calls, for each routine of the chain in the order written,
    `direct`, then `step_size`, then (after the update) `after_step`. What a routine keeps between
    iterations it keeps as attributes, made in `start`.
    """

    needs: ClassVar[Needs] = Needs.NOTHING

    def asks(self) -> Needs:
        """What this routine needs; override where it depends on the options."""
        return self.needs

    def start(self, net: FlatModel) -> None:
        """Once, before the first iteration."""

    def start_task(self, task: int) -> None:
        """At every task switch, and before the first task."""

    def direct(self, g: Tensor, step: Step) -> Tensor:
        """The direction to follow instead of `g`. Must not change `g` in place."""
        return g

    def step_size(self, lr: float, step: Step) -> float:
        """The learning rate of this iteration, given the one so far."""
        return lr

    def after_step(self, step: Step) -> None:
        """After the parameters have moved."""

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        """Around every evaluation: put in place the weights to be judged, then the old ones."""
        yield
