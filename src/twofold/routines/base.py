"""Routines decide how a gradient is followed; a Step is what one iteration hands to them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import reduce
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from twofold.benchmarks import Batch
from twofold.cost import Load
from twofold.errors import UserError, closest
from twofold.method import Part
from twofold.models.flat import FlatModel
from twofold.streams import stream


class Needs(Flag):
    """What a routine asks of an iteration beyond the objective's gradient.

    A run computes only what its routines ask for.
    """

    NOTHING = 0
    OLD = auto()  # g_old, the gradient of the objective's own old-data loss
    FROZEN_OLD = auto()  # the replay batch's gradient from a pass of its own, batch norm frozen
    PER_TASK = auto()  # G, one reference gradient per past task, batch norm frozen
    MEMORY = auto()  # examples of the memory itself
    ELSEWHERE = auto()  # the objective's gradient at other weights

    REPLAY = OLD | FROZEN_OLD | PER_TASK | MEMORY  # what takes a memory that is not empty


@dataclass
class Step:
    """One iteration as a routine sees it. All gradients are vectors as long as `net.values`.

    Their memory is used again in the next iteration: copy what is to be kept.
    """

    task: int  # t, counted from 1
    iteration: int  # n within the task, counted from 1
    net: FlatModel
    g: Tensor  # the objective's gradient, as it is before the first routine
    old: Tensor | None = None  # g_old, for Needs.OLD and Needs.FROZEN_OLD; None in task 1
    references: Tensor | None = None  # G, a row a past task, for Needs.PER_TASK; None in task 1
    old_loss: Tensor | None = None  # the loss that g_old is the gradient of
    losses: dict[str, Tensor] = field(default_factory=dict)  # "total", "new", where replayed "old"
    log: dict[str, Tensor | float] = field(default_factory=dict)  # recorded with the curves
    seed: int = 0  # the run's; see `random`
    iterations: int | None = None  # of the whole task, if that is known
    # For Needs.MEMORY, so many examples of it; None in task 1.
    memory: Callable[[int], Batch] | None = None
    # For Needs.ELSEWHERE, the objective's gradient at these weights, on the same data.
    gradient_at: Callable[[Tensor], Tensor] | None = None
    _norms: list[tuple[Tensor, Tensor]] = field(default_factory=list, init=False)

    def random(self) -> np.random.Generator:
        """For a routine's own draws, which so depend on nothing but this step's place."""
        return stream(self.seed, "routine", self.task, self.iteration)

    def norm(self, vector: Tensor) -> Tensor:
        """||vector||, computed once."""
        for known, norm in self._norms:
            if known is vector:
                return norm
        self.has_norm(vector, torch.linalg.vector_norm(vector))
        return self._norms[-1][1]

    def has_norm(self, vector: Tensor, norm: Tensor) -> Tensor:
        """The vector, whose norm is so known to those that come later."""
        self._norms.append((vector, norm))
        return vector

    def mark(self, **happened: Tensor | float) -> None:
        """Log that something happened (`projected`, `unsolved`), here or in a routine before."""
        for name, now in happened.items():
            before = self.log.get(name)
            if before is not None:
                a, b = (v.float() if isinstance(v, Tensor) else v for v in (before, now))
                now = a + b - a * b  # or, of zeros and ones on whatever device they are
            self.log[name] = now


HOOKS = ("direct", "step_size", "momentum", "after_step", "start", "start_task", "evaluated")
DOES_NOTHING = "sgd"  # and is meant to


class Routine(Part, kind="routine"):
    """The "how". Subclass it, overriding only what you need; see docs/routines.md.

    In every iteration the loop calls, for each routine of the chain in the order written,
    `direct`, `step_size` and `momentum`, then (after the update) `after_step`. What a routine keeps
    between iterations it keeps as attributes, made in `start`.
    """

    needs: ClassVar[Needs] = Needs.NOTHING
    scales: ClassVar[bool] = False  # whether `direct` changes the length of g, and no more
    once: ClassVar[bool] = False  # whether a second one, with nothing new to act on, is a mistake
    first_task: ClassVar[bool] = False  # whether it changes training in the first task

    def __init_subclass__(cls, *, name: str | None = None, kind: str | None = None) -> None:
        if name not in (None, DOES_NOTHING) and not any(map(cls.overrides, HOOKS)):
            own = [key for key, value in vars(cls).items() if callable(value) and key[0] != "_"]
            close = [hook for hook in (closest(key, HOOKS) for key in own) if hook]
            hint = f": did you mean {close[0]}?" if close else ""
            raise UserError(f"routine {name!r} overrides none of {', '.join(HOOKS)}{hint}")
        super().__init_subclass__(name=name, kind=kind)

    def asks(self) -> Needs:
        """Return what this routine needs; override it where that depends on the options."""
        return self.needs

    def cost(self, task: int) -> Load:
        """Return the load of an iteration beyond what `asks` implies."""
        return Load()

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        """Raise UserError where it makes no sense after these routines, or with this momentum."""
        if self.overrides("evaluated") and any(other.overrides("evaluated") for other in before):
            raise UserError(f"{self.name}: a different routine already sets the evaluated weights")
        if self.once:
            for other in reversed(before):
                if type(other) is type(self):
                    raise UserError(f"{self.name} is there twice, to no purpose: leave one out")
                if self.overrides("direct") and other.turns:
                    break

    @classmethod
    def overrides(cls, hook: str) -> bool:
        """Whether it does anything there."""
        return getattr(cls, hook) is not getattr(Routine, hook)

    @property
    def turns(self) -> bool:
        """Whether it may change the direction itself."""
        return self.overrides("direct") and not self.scales

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

    def momentum(self, momentum: float, step: Step) -> float:
        """The share of the last velocity that this iteration keeps, given the one so far."""
        return momentum

    def after_step(self, step: Step) -> None:
        """After the parameters have moved."""

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        """Put the weights to be evaluated in place around every evaluation, then the old ones.

        If a routine overrides this, the trained weights are evaluated as well, and their
        accuracies are recorded as `raw_accuracy_k`.
        """
        yield


def needs_of(routines: Sequence[Routine]) -> Needs:
    """Return what a chain asks for: all that any of its routines does."""
    return reduce(operator.or_, (routine.asks() for routine in routines), Needs.NOTHING)
