"""Routines, which decide how a gradient is followed, and the Step that an iteration passes them."""

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
from twofold.models.products import Products
from twofold.streams import stream


class Needs(Flag):
    """The quantities that a routine needs in an iteration, besides the objective's gradient.

    A run computes only what its routines need.
    """

    NOTHING = 0
    OLD = auto()  # g_old, the gradient of the objective's own old-data loss
    FROZEN_OLD = auto()  # the replay batch's gradient in a separate pass, batch norm frozen
    PER_TASK = auto()  # G, one reference gradient per past task, batch norm frozen
    MEMORY = auto()  # examples of the memory
    ELSEWHERE = auto()  # the objective's gradient at different weights
    CURRENT = auto()  # examples of a memory that holds the current task as well

    REPLAY = OLD | FROZEN_OLD | PER_TASK | MEMORY | CURRENT  # all that need a memory


@dataclass
class Step:
    """One iteration as a routine sees it. All gradients are vectors as long as `net.values`.

    The next iteration overwrites them, so copy those that you keep.
    """

    task: int  # t, counted from 1
    iteration: int  # n within the task, counted from 1
    net: FlatModel
    gradient: Tensor | Products  # of the objective, or its factors: see `g`
    old: Tensor | None = None  # g_old, for Needs.OLD and Needs.FROZEN_OLD; None in task 1
    references: Tensor | None = None  # G, a row per past task, for Needs.PER_TASK; None in task 1
    old_loss: Tensor | None = None  # the loss that g_old is the gradient of
    losses: dict[str, Tensor] = field(default_factory=dict)  # "total", "new", and "old" if replayed
    log: dict[str, Tensor | float] = field(default_factory=dict)  # recorded with the curves
    seed: int = 0  # of the run; see `random`
    iterations: int | None = None  # of the whole task, if that is known
    # For Needs.MEMORY, a function that draws this many examples; None in task 1.
    memory: Callable[[int], Batch] | None = None
    # For Needs.CURRENT, a function that draws this many examples, in every task.
    stored: Callable[[int], Batch] | None = None
    # For Needs.ELSEWHERE, a function that returns the gradient at given weights, on the same data.
    gradient_at: Callable[[Tensor], Tensor] | None = None
    # The share w_o in g = g_n + w_o g_old; 0 if the objective has no old data, None if unknown.
    old_weight: float | None = 0.0
    # The optimiser's momentum if its velocity adds up gradients; 0 if it averages them, as Adam's.
    momentum: float = 0.0
    _norms: list[tuple[Tensor, Tensor]] = field(default_factory=list, init=False)

    @property
    def g(self) -> Tensor:
        """The objective's gradient, before the first routine. It is computed if someone asks."""
        if isinstance(self.gradient, Products):
            self.gradient.multiply()
            self.gradient = self.net.gradient
        return self.gradient

    def random(self) -> np.random.Generator:
        """Return a generator for a routine's own draws, which depends on this step's place only."""
        return stream(self.seed, "routine", self.task, self.iteration)

    def norm(self, vector: Tensor) -> Tensor:
        """Return ||vector||, computed once per vector."""
        for known, norm in self._norms:
            if known is vector:
                return norm
        self.has_norm(vector, torch.linalg.vector_norm(vector))
        return self._norms[-1][1]

    def has_norm(self, vector: Tensor, norm: Tensor) -> Tensor:
        """Store the norm of a vector for later routines, and return the vector."""
        self._norms.append((vector, norm))
        return vector

    def mark(self, **happened: Tensor | float) -> None:
        """Log whether something happened (`projected`, `unsolved`) in any routine so far."""
        for name, value in happened.items():
            old = self.log.get(name)
            if old is not None:
                a, b = (v.float() if isinstance(v, Tensor) else v for v in (old, value))
                value = a + b - a * b  # logical or of zeros and ones, on any device
            self.log[name] = value


HOOKS = ("direct", "step_size", "momentum", "after_step", "start", "start_task", "evaluated")
DOES_NOTHING = "sgd"  # the only routine that overrides nothing


class Routine(Part, kind="routine"):
    """The "how". Subclass it, overriding only what you need; see docs/routines.md.

    In every iteration the loop calls `direct`, `step_size` and `momentum` for each routine of the
    chain, in the order written, and `after_step` after the update. A routine keeps its state
    between iterations in attributes, which it creates in `start`.
    """

    needs: ClassVar[Needs] = Needs.NOTHING
    scales: ClassVar[bool] = False  # whether `direct` changes only the length of g
    once: ClassVar[bool] = False  # whether a second one is a mistake, unless g is turned between
    first_task: ClassVar[bool] = False  # whether it changes training in the first task
    switches: ClassVar[bool] = False  # whether it acts at task switches, and needs to know them

    def __init_subclass__(cls, *, name: str | None = None, kind: str | None = None) -> None:
        if name not in (None, DOES_NOTHING) and not any(map(cls.overrides, HOOKS)):
            methods = [key for key, value in vars(cls).items() if callable(value) and key[0] != "_"]
            close = [hook for hook in (closest(key, HOOKS) for key in methods) if hook]
            hint = f": did you mean {close[0]}?" if close else ""
            raise UserError(f"routine {name!r} overrides none of {', '.join(HOOKS)}{hint}")
        super().__init_subclass__(name=name, kind=kind)

    def asks(self) -> Needs:
        """Return what this routine needs. Override it if that depends on the options."""
        return self.needs

    def cost(self, task: int) -> Load:
        """Return the load of an iteration in addition to what `asks` implies."""
        return Load()

    def evaluation_cost(self) -> Load:
        """Return the load of an evaluation in addition to the test images."""
        return Load()

    def check(self, before: Sequence[Routine], momentum: float) -> None:
        """Raise UserError if it makes no sense after these routines or with this momentum."""
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
        """Tell whether the routine overrides a method."""
        return getattr(cls, hook) is not getattr(Routine, hook)

    @classmethod
    def takes_products(cls) -> bool:
        """Tell whether `direct_products` stands for `direct`, which a subclass may have changed."""
        hooks = ("direct_products", "direct")
        one, other = (next(c for c in cls.__mro__ if hook in vars(c)) for hook in hooks)
        return one is not Routine and issubclass(one, other)

    @property
    def turns(self) -> bool:
        """Whether it may change the direction, and not only its length."""
        return self.overrides("direct") and not self.scales

    def start(self, net: FlatModel) -> None:
        """Prepare for a run, once before the first iteration."""

    def start_task(self, task: int) -> None:
        """Prepare for a task, at every task switch and before the first task."""

    def direct(self, g: Tensor, step: Step) -> Tensor:
        """Return the direction to follow instead of `g`. It must not change `g` in place."""
        return g

    def direct_products(self, products: Products, step: Step) -> Tensor | None:
        """Return what `direct` returns, up to rounding, without computing g; None for g itself.

        It is called in place of `direct` if the routine is the first that changes the direction,
        and if the network and the loss give the gradient by its factors.
        """
        return None

    def step_size(self, lr: float, step: Step) -> float:
        """Return the learning rate of this iteration, given that of the routines before."""
        return lr

    def momentum(self, momentum: float, step: Step) -> float:
        """Return the momentum of this iteration, given that of the routines before."""
        return momentum

    def after_step(self, step: Step) -> None:
        """Act after the parameters were updated."""

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        """Put the weights to evaluate in place during an evaluation, then the trained ones again.

        If a routine overrides this, the trained weights are evaluated as well, and their
        accuracies are recorded as `raw_accuracy_k`.
        """
        yield


def needs_of(routines: Sequence[Routine]) -> Needs:
    """Return all that the routines of a chain need."""
    return reduce(operator.or_, (routine.asks() for routine in routines), Needs.NOTHING)
