"""The curves of a run during training, with a row per iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from twofold.errors import UserError

ACCURACY = "accuracy"  # what is measured, unless a run says otherwise

Columns = dict[str, NDArray[np.generic]]

# The columns recorded at every iteration, each with its value if a method records none.
RECORDED = {
    "loss": np.nan,  # the objective's
    # The losses on new and on replayed data: the sum of the objective's terms, divided by the sum
    # of their weights. With ER and Joint, this is the mean loss. The terms of DER and BiC have
    # weight 1 and contain factors such as alpha and 1/t.
    "loss_new": np.nan,
    "loss_old": np.nan,
    "projected": 0.0,  # whether a routine changed the gradient's direction
    "norm_ratio": 1.0,  # the norm of the direction, divided by the norm of the gradient
    "unsolved": 0.0,  # whether a projection had no solution, or a gradient was not finite
}


TAKEN = ("accuracy_", "lowest_")  # what names of accuracies begin with, also after `raw_`

BLOCK = 1000  # iterations after which values are read from a GPU


class Curves:
    """A collection of values and tensors, which are converted to columns in blocks.

    Tensors on a GPU are read when their block is full, so that the GPU does not wait. Tensors on
    the CPU are read at once, since small tensors that stay alive between large ones fragment the
    heap.
    """

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._settled: list[dict[str, NDArray[np.float32]]] = []
        self._open: list[dict[str, Tensor | float]] = []
        self._accuracies: list[dict[str, Tensor | NDArray[np.float32]]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, task: int, values: Mapping[str, Tensor | float]) -> None:
        """Add the values that an iteration of a task recorded."""
        if len(self._open) >= BLOCK:
            self._settle()
        read = {name: _read(value) for name, value in values.items()}
        self._open.append({"task": task, **RECORDED, **read})
        self._accuracies.append({})
        self._length += 1

    def add_accuracies(
        self, accuracies: Tensor, raw: Tensor | None = None, kind: str = "accuracy"
    ) -> None:
        """Add the accuracies on the tasks seen so far, after the iteration that was added last.

        raw: the accuracies of the trained weights, if different weights are evaluated.
        kind: `accuracy`, or `lowest` for the lowest ones so far on the tasks before this one.
        """
        tables = {kind: _read_all(accuracies)}
        if raw is not None:
            tables[f"raw_{kind}"] = _read_all(raw)
        if self._accuracies:
            self._accuracies[-1] |= tables
        else:  # the iteration was read meanwhile, for a checkpoint
            self._amend(tables)

    def _amend(self, found: dict[str, Tensor | NDArray[np.float32]]) -> None:
        last = self._settled[-1]
        for kind, values in found.items():
            for k, value in enumerate(values.tolist(), 1):
                empty = np.full(len(last["task"]), np.nan, np.float32)
                last.setdefault(f"{kind}_{k}", empty)[-1] = value

    def cut(self, length: int) -> None:
        """Forget all iterations after the first `length`."""
        if length < self._length:
            self.restore({name: column[:length] for name, column in self.state().items()})

    def columns(self) -> Columns:
        """Return all columns, of equal length; an accuracy is NaN where it was not evaluated."""
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

    def last(self, kind: str) -> list[float]:
        """Return the accuracies of the last iteration, task by task, NaN where there are none."""
        columns = self.columns() if self._length else {}
        names = (f"{kind}_{k}" for k in range(1, self._tasks + 1))
        return [float(columns[name][-1]) for name in names if name in columns]

    def state(self) -> Columns:
        columns = self.columns()
        del columns["iteration"]
        return columns

    def restore(self, columns: Columns) -> None:
        self._settled = [{name: column.astype(np.float32) for name, column in columns.items()}]
        self._open, self._accuracies = [], []
        self._length = len(columns["task"])

    def _settle(self) -> None:
        """Convert the values added since the last call to columns."""
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
                    values = accuracies[kind]
                    numbers = values.cpu().numpy() if isinstance(values, Tensor) else values
                    table[row, : len(numbers)] = numbers
            part |= {f"{kind}_{k + 1}": table[:, k] for k in range(self._tasks)}
        self._settled.append(part)
        self._open, self._accuracies = [], []


def rows_of(columns: Any) -> int:
    """Return the iterations that a state of curves holds; -1 if it is no state of curves."""
    if not isinstance(columns, dict) or not {"task", *RECORDED} <= columns.keys():
        return -1
    whole = all(map(_is_column, columns.values())) and len({*map(len, columns.values())}) == 1
    return len(columns["task"]) if whole else -1


def _is_column(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biuf"


def loggable(name: str, value: Any) -> Tensor | float:
    """Return a number that a user's loop records, checked; a tensor stays where it is."""
    taken = name in ("task", "iteration") or name.removeprefix("raw_").startswith(TAKEN)
    try:
        if not taken:
            return value.detach().reshape(()) if isinstance(value, Tensor) else float(value)
    except (TypeError, ValueError, RuntimeError):
        pass
    raise UserError(f"can't log {name!r}: log a number by a name that is not taken")


def _read(value: Tensor | float) -> Tensor | float:
    """Return a value on the CPU as a plain float, and a tensor on a GPU as it is."""
    return float(value) if not isinstance(value, Tensor) or value.device.type == "cpu" else value


def _read_all(values: Tensor) -> Tensor | NDArray[np.float32]:
    return values.numpy().copy() if values.device.type == "cpu" else values
