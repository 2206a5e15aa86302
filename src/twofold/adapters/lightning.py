"""A callback for Lightning: one call of `Trainer.fit` is one task."""

from __future__ import annotations

from typing import Any

from twofold.adapters.loop import Loop, MakeHow
from twofold.errors import UserError
from twofold.extras import need
from twofold.how import How
from twofold.watch import Watch

need("lightning", "this adapter")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402


class TwofoldCallback(Callback):
    """Evaluates the module after every optimiser step, and changes the direction of the steps.

    watch: continual evaluation. Call `watch.finish()` after the last task.
    how: routines, or a function of the optimiser and the module that returns them.
    task: the number of the first task, if the loop continues with a later one.
    """

    def __init__(
        self, watch: Watch | None = None, how: How | MakeHow | None = None, task: int = 0
    ) -> None:
        self._loop, self.task, self._steps = Loop(watch, how), task, 0
        self._state: dict[str, Any] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if len(trainer.optimizers) != 1:
            raise UserError(f"twofold needs one optimiser, not {len(trainer.optimizers)}")
        self._steps = trainer.global_step
        done = self._steps if trainer.ckpt_path else 0
        self._loop.begin(self.task, trainer.optimizers[0], pl_module, done, self._state)
        self._state = None

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *batch: Any
    ) -> None:
        if trainer.global_step > self._steps:  # with accumulated gradients, not every batch
            self._steps = trainer.global_step
            self._loop.step(pl_module, outputs["loss"])

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.task += 1

    def state_dict(self) -> dict[str, Any]:
        self._loop.save()
        return {} if self._loop.how is None else self._loop.how.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._state = state_dict
