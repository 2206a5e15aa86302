"""The curves of a run while they grow: a row an iteration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Columns = dict[str, NDArray[np.generic]]

# Recorded at every iteration, each with its value where a method has nothing to say.
RECORDED = {
    "loss": np.nan,  # the objective's
    # Of new and of replayed data: the objective's terms, over the sum of their weights. That is the
    # mean loss with ER and Joint; DER's and BiC's terms, of weight 1, hold alpha, 1/t and the like.
    "loss_new": np.nan,
    "loss_old": np.nan,
    "projected": 0.0,  # whether a routine changed the gradient's direction
    "norm_ratio": 1.0,  # the followed direction's norm, over the gradient's
    "unsolved": 0.0,  # a projection that had no solution, or a gradient that was not finite
}


class Curves:
    """Takes values as they come, tensors included, and makes columns of them when asked.

    A tensor is not read before that, so that a GPU need not wait for the host.
    """

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._settled: list[dict[str, NDArray[np.float32]]] = []
        self._open: list[dict[str, Tensor | float]] = []
        self._accuracies: list[dict[str, Tensor]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, task: int, values: Mapping[str, Tensor | float]) -> None:
        """What an iteration of a task had to say."""
        self._open.append({"task": task, **RECORDED, **values})
        self._accuracies.append({})
        self._length += 1

    def judged(self, accuracies: Tensor, raw: Tensor | None = None) -> None:
        """The accuracies on the tasks seen so far, after the iteration added last.

        raw: those of the weights that are trained, where others are judged.
        """
        self._accuracies[-1] = {"accuracy": accuracies}
        if raw is not None:
            self._accuracies[-1]["raw_accuracy"] = raw

    def columns(self) -> Columns:
        """All columns, of equal length. An accuracy is NaN where its task was not evaluated."""
        self._settle()
        names = dict.fromkeys(name for part in self._settled for name in part)
        joined: Columns = {"iteration": np.arange(1, self._length + 1, dtype=np.int32)}
        for name in names:
            parts = [
                p.get(name, np.full(len(p["task"]), np.nan, np.float32)) for p in self._settled
            ]
            joined[name] = np.concatenate(parts)
        joined["task"] = joined["task"].astype(np.int16)
        return joined

    def state(self) -> Columns:
        columns = self.columns()
        del columns["iteration"]
        return columns

    def restore(self, columns: Columns) -> None:
        self._settled = [{name: column.astype(np.float32) for name, column in columns.items()}]
        self._open, self._accuracies = [], []
        self._length = len(columns["task"])

    def _settle(self) -> None:
        """Read what was added since the last time."""
        if not self._open:
            return
        names = dict.fromkeys(name for row in self._open for name in row)
        part = {
            name: np.array([float(row.get(name, np.nan)) for row in self._open], np.float32)
            for name in names
        }
        for kind in dict.fromkeys(["accuracy", *(k for row in self._accuracies for k in row)]):
            table = np.full((len(self._open), self._tasks), np.nan, np.float32)
            for row, accuracies in enumerate(self._accuracies):
                if kind in accuracies:
                    table[row, : len(accuracies[kind])] = accuracies[kind].cpu().numpy()
            part |= {f"{kind}_{k + 1}": table[:, k] for k in range(self._tasks)}
        self._settled.append(part)
        self._open, self._accuracies = [], []
