"""Checks whether an objective and routines can be combined, and whether they use a memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofold.benchmarks import Benchmark, Task
from twofold.benchmarks.base import Pool, Rows
from twofold.choices import Scenario
from twofold.errors import UserError
from twofold.memories import Memory
from twofold.memories.per_class_task import QUOTA
from twofold.models import FlatModel
from twofold.models.task_ids import needs_task
from twofold.objectives import Objective
from twofold.routines import Needs, Routine
from twofold.routines.base import needs_of
from twofold.settings import LARGEST

CHUNK = 10_000  # examples whose tokens are read at once


def uses_memory(objective: Objective, routines: Sequence[Routine]) -> bool:
    """Tell whether a method uses a memory."""
    return objective.replays != "nothing" or bool(needs_of(routines) & Needs.REPLAY)


def check_chain(routines: Sequence[Routine], momentum: float) -> None:
    """Raise UserError if routines don't go together, or not with this momentum."""
    for place, routine in enumerate(routines):
        routine.check(routines[:place], momentum)
    needs = needs_of(routines)
    if Needs.OLD in needs and Needs.FROZEN_OLD in needs:
        raise UserError(
            "routines of one method must agree on the old-data gradient: "
            "all with agem's reference=objective, or all with frozen"
        )


def check_method(
    objective: Objective,
    routines: Sequence[Routine],
    scenario: Scenario,
    memory: Memory,
    momentum: float,
) -> None:
    """Raise UserError if a method can't be used in such a setting."""
    quota = memory.quota()
    objective.check(scenario, LARGEST if quota is None else quota)
    for term in objective.terms:
        term.check(objective.name, scenario)
    check_chain(routines, momentum)
    _check_current(objective, routines, memory)
    if uses_memory(objective, routines) and not objective.stores_all and quota == 0:
        raise UserError("this method replays, but with memory per class 0 the memory stays empty")


def _check_current(objective: Objective, routines: Sequence[Routine], memory: Memory) -> None:
    """Raise UserError if a part of a method needs examples of the current task and gets none."""
    needing = [objective.name] if objective.needs_current else []
    needing += [routine.name for routine in routines if Needs.CURRENT in routine.asks()]
    if needing and objective.stores_all:
        raise UserError(
            f"{needing[0]} needs a memory that holds the current task, and {objective.name} "
            "stores a task at its end"
        )
    if needing and not memory.current:
        raise UserError(
            f"{needing[0]} needs a memory that holds the current task, such as "
            f"reservoir(2000), not {memory.text()}"
        )


def check_quota(
    objective: Objective, routines: Sequence[Routine], memory: Memory, benchmark: Benchmark
) -> None:
    """Raise UserError if a quota is larger than a class. The default takes what there is."""
    quota = memory.quota()
    if quota is None or quota == QUOTA or objective.stores_all:
        return
    if not uses_memory(objective, routines):
        return
    labels = benchmark.train.labels.cpu().numpy()
    counts = [np.unique(labels[task.train], return_counts=True)[1] for task in benchmark.tasks]
    smallest = min(int(each.min()) for each in counts)
    if quota > smallest:
        raise UserError(
            f"a quota of {quota} examples per class is larger than a class: {benchmark.name} has "
            f"one of {smallest} in a task"
        )


def check_outputs(net: FlatModel, benchmark: Benchmark, tasks: Sequence[Task]) -> int:
    """Return how many outputs a network has. Raise UserError if there are more labels."""
    largest = max(label for task in tasks for label in task.classes)
    batch = benchmark.train.batch(tasks[0].train[:2])
    if batch.tasks is None and needs_task(net.module):
        raise UserError("the network needs the ids of tasks: set scenario to task")
    outputs = net.outputs(batch.x, batch.tasks)
    if not batch.x.is_floating_point():
        _check_tokens(net, benchmark.train, [task.train for task in tasks])
        _check_tokens(net, benchmark.test, [task.test for task in tasks])
    if outputs <= largest:
        raise UserError(
            f"the network has {outputs} outputs, but {benchmark.name!r} has labels up to "
            f"{largest}: it needs at least {largest + 1}"
        )
    return outputs


def _check_tokens(net: FlatModel, pool: Pool, tasks: Sequence[Rows]) -> None:
    """Let the network see the smallest and the largest token, which it may not know."""
    found: dict[str, tuple[int, Rows]] = {}
    for rows in np.array_split(np.concatenate(tasks), range(CHUNK, sum(map(len, tasks)), CHUNK)):
        tokens = pool.batch(rows).x.flatten(1)
        for name, each in (("lowest", -tokens.amin(1)), ("highest", tokens.amax(1))):
            value, place = int(each.max()), int(each.argmax())
            if name not in found or value > found[name][0]:
                found[name] = value, rows[place : place + 1]
    batch = pool.batch(np.concatenate([rows for _, rows in found.values()]))
    net.outputs(batch.x, batch.tasks)
