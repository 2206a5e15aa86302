"""MIN and AVG, as the paper's appendix A defines them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twofold.sequence import new_places


def average_accuracy(final: ArrayLike, order: Sequence[int] | None = None) -> float:
    """Return avg-ACC, the mean over tasks of the final model's accuracy on the task's test set.

    order: what was learned at each place, if tasks return; a task counts once.
    """
    accuracies = np.asarray(final, float)
    return float(np.mean(accuracies[new_places(order, len(accuracies))]))


def minimum_accuracies(task: ArrayLike, accuracy: ArrayLike) -> NDArray[np.float64]:
    """Return min-ACC of each task except for the last: its lowest accuracy during later tasks.

    task: the task (from 1) that was being learned at each evaluation.
    accuracy: a row per evaluation and a column per task, NaN where it was not evaluated.

    The first evaluation that counts for task k is the one after the first update on task k+1.
    """
    learned, curves = np.asarray(task), np.asarray(accuracy, float)
    return np.array(
        [np.nanmin(curves[learned > k + 1, k]) for k in range(curves.shape[1] - 1)], float
    )


def average_minimum_accuracy(
    task: ArrayLike, accuracy: ArrayLike, order: Sequence[int] | None = None
) -> float | None:
    """Return avg-min-ACC, the mean of min-ACC over tasks; None with a single task.

    order: what was learned at each place, if tasks return; a task counts from its first end on.
    """
    minima = minimum_accuracies(task, accuracy)
    minima = minima[[k for k in new_places(order, len(minima) + 1) if k < len(minima)]]
    return float(minima.mean()) if len(minima) else None
