"""What all adapters do: a task begins, and a step is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from twofold.errors import UserError
from twofold.how import How
from twofold.watch import Watch

MakeHow = Callable[[Optimizer, nn.Module], How]


class Loop:
    """Tells a `Watch` and a `How` what happens in the loop of another package.

    how: a `How`, or a function of the optimiser and the model that returns one. Such a function is
        for loops that create their optimiser themselves.
    """

    def __init__(self, watch: Watch | None, how: How | MakeHow | None) -> None:
        self.watch = watch
        self.how = how if isinstance(how, How) else None
        self._make = None if isinstance(how, How) else how

    def begin(
        self,
        task: int,
        optimizer: Optimizer,
        model: nn.Module,
        done: int = 0,
        state: dict[str, Any] | None = None,
    ) -> None:
        """Begin a task, or continue it.

        task: its number from 0.
        done: how many of its iterations were done before the loop was interrupted.
        state: what the routines kept from those.
        """
        if self._make is not None and self.how is None:
            self.how = self._make(optimizer, model)
        if self.how is not None:
            self.how.use(optimizer)
            while self.how.task <= task:
                self.how.switch()
            if state is not None:
                self.how.load_state_dict(state)
            elif done:
                raise UserError("the state of the routines is not known: start the task again")
        if self.watch is not None:
            self.watch.task(task, done)

    def save(self) -> None:
        """Write the curves so far, when the loop saves its own state."""
        if self.watch is not None:
            self.watch.save()

    def step(self, model: nn.Module, loss: Tensor | None = None) -> None:
        """Count an iteration, and evaluate the model if that is due."""
        if self.watch is not None:
            if loss is not None:
                self.watch.log(loss=loss)
            self.watch(model, how=self.how)
