"""Runs whose measures are worked by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from helpers.runs import scored_run
from twofold.experiments.runs import Run

NAN = np.nan
TASKS = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]  # that was being learned
ACCURACY = np.array(  # on each task, after every iteration
    [
        [20.0, 60.0, 80.0, 90.0, 70.0, 50.0, 85.0, 89.0, 88.0, 80.0, 84.0, 86.0],
        [NAN, NAN, NAN, NAN, 10.0, 40.0, 76.0, 80.0, 60.0, 79.5, 78.0, 82.0],
        [NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 30.0, 63.0, 50.0, 70.0],
    ]
).T
FINAL = [[91.0], [93.0, 81.0], [85.0, 83.0, 71.0]]  # on the whole test sets


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
