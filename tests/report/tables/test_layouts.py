"""The table `trajectories`, and `runs show`: measures where they are shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.runs import scored_run
from test_measures import FINAL, HAND, hand

from twofold import Run, UserError
from twofold.compare.groups import groups
from twofold.report.tables import study_table


def trained(
    method: str = "er", *, lower: float = 0.0, raw: float | None = None, **more: Any
) -> Run:
    """A run with the curves that are worked by hand; each accuracy lower by so much.

    raw: has the curves of the trained weights, too, lower by that.
    """
    task, accuracy = hand(HAND)
    columns = {"task": np.array(task, np.int16)}
    added: dict[str, Any] = {}
    for kind, drop in (("accuracy", lower), ("raw_accuracy", raw)):
        if drop is not None:
            columns |= {f"{kind}_{k + 1}": accuracy[:, k] - drop for k in range(3)}
            added[f"{kind}_after_task"] = [[a - drop for a in after] for after in FINAL]
    one = scored_run(method, **more)
    return dataclasses.replace(one, curves=columns, summary={**one.summary, **added})


def test_only_some_of_the_metrics() -> None:
    chosen = ["raw_avg", "min", "gap_depth"]
    found = study_table("trajectories", groups([trained()]), metrics=chosen)
    assert found.blocks[0].columns == ("raw AVG", "MIN", "gap depth")
    with pytest.raises(UserError, match="unknown metric 'gap': did you mean 'gap_depth'"):
        study_table("trajectories", [], metrics=["gap"])
    with pytest.raises(UserError, match="unknown metric 'residual'"):
        study_table("main", [], metrics=["residual"])
