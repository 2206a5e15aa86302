"""A chain of routines: the "how" of one step, for the package's own loop and for anyone's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from twofold.errors import UserError
from twofold.models import FlatModel
from twofold.models.products import Products
from twofold.routines import Needs, Routine, Step
from twofold.routines.base import needs_of

CHECKED = 3  # iterations of each task in which routines must leave their input unchanged
RATIO = 10  # iterations after which `norm_ratio` is worth computing g, if nobody else needs it


class Chain:
    """Runs routines in the order written: each gets what the routines before it made."""

    def __init__(self, routines: Sequence[Routine]) -> None:
        self.routines = list(routines)
        self.needs = needs_of(routines)
        self._first = self._taking_products()

    def _taking_products(self) -> int | None:
        """Return the place of the first routine that changes the direction, if it takes products.

        The others must do without g_old and gradients elsewhere, which come with g itself.
        """
        acting = [k for k, routine in enumerate(self.routines) if routine.overrides("direct")]
        if not acting or not self.routines[acting[0]].takes_products():
            return None
        others = needs_of([each for k, each in enumerate(self.routines) if k != acting[0]])
        return None if others & (Needs.OLD | Needs.ELSEWHERE) else acting[0]

    @property
    def takes_products(self) -> bool:
        """Whether a step's gradient may be given by its factors."""
        return self._first is not None

    @property
    def evaluates_others(self) -> bool:
        """Whether a routine has different weights evaluated than those that are trained."""
        return any(routine.overrides("evaluated") for routine in self.routines)

    def start(self, net: FlatModel) -> None:
        """Prepare, once, before the first iteration."""
        for routine in self.routines:
            routine.start(net)

    def start_task(self, task: int) -> None:
        """Tell the routines that a task begins."""
        for routine in self.routines:
            routine.start_task(task)

    def direct(self, step: Step) -> Tensor:
        """Return the direction to follow instead of the step's gradient, and log its length.

        It is the gradient itself, the same tensor, if no routine changes it.
        """
        direction, routines = self._begin(step)
        for routine in routines:
            before = direction.clone() if step.iteration <= CHECKED else None
            given, direction = direction, routine.direct(direction, step)
            if before is not None and not _same(before, given):
                raise UserError(
                    f"routine {routine.name!r} changes the gradient that it is given in place: "
                    "return a new one, such as 0.5 * g instead of g.mul_(0.5)"
                )
        if isinstance(step.gradient, Products) and step.iteration % RATIO != 1:
            step.log["norm_ratio"] = math.nan
        elif direction is not step.g:
            step.log["norm_ratio"] = step.norm(direction) / step.norm(step.g)
        return direction

    def _begin(self, step: Step) -> tuple[Tensor, list[Routine]]:
        """Return the direction to begin with, and the routines that may still change it."""
        if self._first is not None and isinstance(step.gradient, Products):
            direction = self.routines[self._first].direct_products(step.gradient, step)
            if direction is not None:
                return direction, self.routines[self._first + 1 :]
        return step.g, self.routines

    def step_size(self, lr: float, step: Step) -> float:
        """Return the learning rate of this step."""
        for routine in self.routines:
            lr = routine.step_size(lr, step)
        return lr

    def momentum(self, momentum: float, step: Step) -> float:
        """Return the momentum of this step."""
        for routine in self.routines:
            momentum = routine.momentum(momentum, step)
        return momentum

    def after_step(self, step: Step) -> None:
        """Tell the routines that the parameters have moved."""
        for routine in self.routines:
            routine.after_step(step)

    @contextmanager
    def evaluated(self, net: FlatModel) -> Iterator[None]:
        """Put the weights that the routines want evaluated in place for a while."""
        with ExitStack() as stack:
            for routine in self.routines:
                stack.enter_context(routine.evaluated(net))
            yield

    def state(self) -> list[dict[str, Any]]:
        """Return what the routines keep between iterations."""
        return [routine.state() for routine in self.routines]

    def restore(self, states: Sequence[dict[str, Any]]) -> None:
        """Continue with what `state` returned."""
        for routine, state in zip(self.routines, states, strict=True):
            routine.restore(state)


def _same(one: Tensor, other: Tensor) -> bool:
    """Compare bits, since NaN is equal to nothing."""
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))
