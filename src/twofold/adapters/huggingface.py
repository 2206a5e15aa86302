"""A callback for the Trainer of Hugging Face: one call of `Trainer.train` is one task."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import Optimizer

from twofold.adapters.loop import Loop, MakeHow
from twofold.extras import need
from twofold.how import How
from twofold.watch import Watch

need("huggingface", "this adapter")

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments  # noqa: E402


class TwofoldCallback(TrainerCallback):
    """Evaluates the model after every optimiser step, and changes the direction of the steps.

    watch: continual evaluation. Call `watch.finish()` after the last task.
    how: routines, or a function of the optimiser and the model that returns them.
    task: the number of the first task, if the loop continues with a later one.
    """

    def __init__(
        self, watch: Watch | None = None, how: How | MakeHow | None = None, task: int = 0
    ) -> None:
        self._loop, self.task = Loop(watch, how), task

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        *,
        model: nn.Module,
        optimizer: Optimizer,
        **others: Any,
    ) -> None:
        plain = getattr(optimizer, "optimizer", optimizer)  # Accelerate wraps it
        self._loop.begin(self.task, plain, model, state.global_step)

    def on_step_end(
        self, args: Any, state: Any, control: Any, *, model: nn.Module, **others: Any
    ) -> None:
        self._loop.step(model)

    def on_save(self, *args: Any, **others: Any) -> None:
        self._loop.save()

    def on_train_end(self, *args: Any, **others: Any) -> None:
        self.task += 1
