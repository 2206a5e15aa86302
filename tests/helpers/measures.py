"""Curves of three tasks and runs whose gaps and measures are worked by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from helpers.runs import scored_run
from twofold.experiments.runs import Run

NAN = np.nan

#   task, accuracy on tasks 1, 2, 3
HAND = [
    (1, 20.0, NAN, NAN),
    (1, 60.0, NAN, NAN),
    (1, 80.0, NAN, NAN),
    (1, 90.0, NAN, NAN),  # switch 4
    (2, 70.0, 10.0, NAN),
    (2, 50.0, 40.0, NAN),
    (2, 85.0, 76.0, NAN),
    (2, 89.0, 80.0, NAN),  # switch 8
    (3, 88.0, 60.0, 30.0),
    (3, 80.0, 79.5, 63.0),
    (3, 84.0, 78.0, 50.0),
    (3, 86.0, 82.0, 70.0),
]
FINAL = [[91.0], [93.0, 81.0], [85.0, 83.0, 71.0]]  # on the whole test sets


def hand(rows: Sequence[tuple[float, ...]] = HAND) -> tuple[list[float], np.ndarray]:
    return [row[0] for row in rows], np.array([row[1:] for row in rows])


TASKS, ACCURACY = hand()


def measured_run(
    method: str = "er", *, lower: float = 0.0, raw: float | None = None, **options: Any
) -> Run:
    """A run with these curves.

    lower: subtracted from each accuracy.
    raw: the same for the curves of the trained weights, if the run has them.
    """
    columns = {"task": np.array(TASKS, np.int16)}
    added: dict[str, Any] = {}
    for kind, drop in (("accuracy", lower), ("raw_accuracy", raw)):
        if drop is not None:
            columns |= {f"{kind}_{k + 1}": ACCURACY[:, k] - drop for k in range(3)}
            added[f"{kind}_after_task"] = [[a - drop for a in after] for after in FINAL]
    run = scored_run(method, **options)
    return dataclasses.replace(run, columns=columns, summary={**run.summary, **added})
