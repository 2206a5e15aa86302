"""Checks whether a method can do without task boundaries, or with tasks that return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twofold.compatibility import uses_memory
from twofold.component import Component
from twofold.errors import UserError
from twofold.memories import Memory
from twofold.objectives import Objective
from twofold.routines import Needs, Routine
from twofold.settings import Settings
from twofold.terms import Addition

HOOKS = ("start_task", "end_task", "held_out")  # who overrides one of them acts at boundaries


def check_boundaries(
    objective: Objective,
    routines: Sequence[Routine],
    memory: Memory,
    settings: Settings,
    sequence: Sequence[int],
) -> None:
    """Raise UserError if a method needs boundaries that a stream lacks, or no task to return."""
    if objective.divides_classes and len(set(sequence)) < len(sequence):
        raise UserError(
            f"{objective.name} divides classes into old and new ones, so no task can return"
        )
    if not settings.task_free:
        return
    for part, why in _bound(objective, routines):
        raise UserError(f"{part.name} {why}, and a task-free stream has no tasks")
    if uses_memory(objective, routines) and not memory.current:
        raise UserError(
            "a task-free stream stores examples as they come: set a memory that holds the current "
            f"task, such as reservoir(2000), not {memory.text()}"
        )


def _bound(objective: Objective, routines: Sequence[Routine]) -> Iterator[tuple[Component, str]]:
    """Yield the parts of a method that need task boundaries, with what each needs them for."""
    if objective.replays == "each" or objective.stores_all:
        yield objective, "replays each past task"
    for routine in routines:
        if Needs.PER_TASK in routine.asks():
            yield routine, "has a reference for each past task"
        if routine.switches:
            yield routine, "acts at task switches"
    bases = [(objective, Objective), *((term, Addition) for term in objective.terms)]
    bases += [(routine, Routine) for routine in routines]
    for part, base in bases:
        if any(getattr(type(part), hook, None) is not getattr(base, hook, None) for hook in HOOKS):
            yield part, "acts at the start or the end of a task"
