"""The lowest accuracies so far on past tasks, found from a part of the images (`exact-min`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from twofold.evaluation.continual import Evaluator
from twofold.evaluation.predictors import Scores


class Minima:
    """The lowest accuracy so far on each task before the current one, of one set of weights."""

    def __init__(self, evaluator: Evaluator, task: int, known: Sequence[float]) -> None:
        """Begin with what was recorded before; NaN, or no number, means that nothing was."""
        self._evaluator = evaluator
        values = [value for value in known if not math.isnan(value)][: task - 1]
        self.values = torch.tensor(values + (task - 1 - len(values)) * [math.inf])

    def take(self, accuracies: Tensor) -> Tensor:
        """Return the minima after an evaluation of all tasks so far."""
        self.values = self.values.minimum(accuracies[: len(self.values)].cpu())
        return self.values

    def search(self, scores: Scores) -> Tensor:
        """Return the minima after an iteration that was not evaluated."""
        self.values = self._evaluator.lowest(self.values, scores)
        return self.values
