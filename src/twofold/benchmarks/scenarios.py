"""Scenarios: what is known of an example's task, in training and in evaluation.

In the task scenario, the id of its task comes with every example, and the network answers among the
classes of that task. In the other two it answers among all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from twofold.benchmarks.base import Benchmark, Pool, Recipe, Rows
from twofold.choices import Scenario
from twofold.errors import UserError


def requested(
    scenario: Scenario | None, benchmark: Benchmark | type[Recipe]
) -> Literal["task"] | None:
    """Return `task` if that is the scenario, and None for the benchmark's own without ids.

    Raise UserError for a scenario that makes no sense.
    """
    own = benchmark.scenario
    scenario = scenario or own
    if scenario == "task" and not benchmark.task_ids:
        raise UserError(
            f"scenario task needs the task of every example, which {benchmark.name} does not give"
        )
    if scenario == "task":
        return "task"
    if scenario != own:
        others = "" if own == "task" else " or task"
        raise UserError(f"the scenario of {benchmark.name} is {own}{others}, not {scenario}")
    return None


def in_scenario(benchmark: Benchmark, scenario: Scenario | None) -> Benchmark:
    """Return a benchmark in a scenario (None: its own), with the ids of tasks where it has them."""
    if requested(scenario, benchmark) is None:
        return benchmark
    train = _identified(benchmark.train, [task.train for task in benchmark.tasks])
    test = _identified(benchmark.test, [task.test for task in benchmark.tasks])
    return dataclasses.replace(benchmark, scenario="task", train=train, test=test)


def _identified(pool: Pool, tasks: Iterable[Rows]) -> Pool:
    """Return a pool whose batches have task ids; a task that returns has the id of its first time.

    The ids count from 0, as labels do.
    """
    ids = torch.full((len(pool),), -1)
    for number, rows in enumerate(tasks):
        index = torch.as_tensor(rows)
        ids[index] = torch.where(ids[index] < 0, number, ids[index])
    return Pool(pool.images, pool.labels, pool.whitening, ids.to(pool.labels.device))


def own_outputs(benchmark: Benchmark, outputs: int) -> Tensor:
    """Return a row per task that marks the outputs of its own classes."""
    own = torch.zeros(len(benchmark.tasks), outputs, dtype=torch.bool)
    for number, task in enumerate(benchmark.tasks):
        own[number, list(task.classes)] = True
    return own.to(benchmark.train.labels.device)
