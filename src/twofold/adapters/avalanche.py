"""A plugin for Avalanche: one experience is one task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.utils.data import Dataset

from twofold.adapters.loop import Loop, MakeHow
from twofold.extras import need
from twofold.how import How
from twofold.watch import Watch

need("avalanche", "this adapter")

from avalanche.training.plugins import SupervisedPlugin  # noqa: E402


class TwofoldPlugin(SupervisedPlugin):
    """Evaluates the model after every iteration, and changes the direction of the steps.

    watch: continual evaluation. Call `watch.finish()` after the last experience.
    how: routines, or a function of the optimiser and the model that returns them.
    """

    def __init__(self, watch: Watch | None = None, how: How | MakeHow | None = None) -> None:
        super().__init__()
        self._loop, self._task = Loop(watch, how), -1

    def before_training_exp(self, strategy: Any, **others: Any) -> None:
        experience = strategy.experience  # of an online stream, a part of one
        task = getattr(experience, "origin_experience", experience).current_experience
        if task != self._task:
            self._task = task
            self._loop.begin(task, strategy.optimizer, strategy.model)

    def after_training_iteration(self, strategy: Any, **others: Any) -> None:
        self._loop.step(strategy.model, strategy.loss)


def sets_of(stream: Iterable[Any]) -> dict[str, Dataset[Any]]:
    """Return the test sets of a stream of experiences, for `Watch`."""
    return {str(one.current_experience): _Pairs(one.dataset.eval()) for one in stream}


class _Pairs(Dataset[tuple[Tensor, int]]):
    """The inputs and labels of a dataset of Avalanche, which also holds labels of tasks."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        x, y, *_ = self._source[row]
        return x, y
