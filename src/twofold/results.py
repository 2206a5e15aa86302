"""What training reports: its progress, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from twofold.curves import Columns


@dataclass(frozen=True)
class Progress:
    """The progress of a run, after an evaluation."""

    task: int
    iteration: int  # of the whole run
    iterations: int
    accuracy: Tensor | float  # mean over the tasks so far; a tensor, so that a GPU does not wait


@dataclass(frozen=True)
class Result:
    """The result of training: a row of curves per iteration, and accuracies on whole test sets."""

    curves: Columns
    task_ends: list[list[float]]  # [k][i]: accuracy on task i+1, after task k+1
    raw_task_ends: list[list[float]]  # of the trained weights, if different ones are evaluated
    finite: bool  # whether all losses and the final weights are finite
    seconds: dict[str, float]  # in training and in evaluation
    audit: dict[str, float] = field(default_factory=dict)  # of evaluation in bf16
    precision: dict[str, Any] = field(default_factory=dict)  # the choice of `auto`, with its times
