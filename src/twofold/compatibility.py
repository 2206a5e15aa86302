"""Checks whether an objective and routines can be combined, and whether they use a memory."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.choices import Scenario
from twofold.errors import UserError
from twofold.objectives import Objective
from twofold.routines import Needs, Routine
from twofold.routines.base import needs_of


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
    memory_per_class: int,
    momentum: float,
) -> None:
    """Raise UserError if a method can't be used in such a setting."""
    objective.check(scenario, memory_per_class)
    check_chain(routines, momentum)
    if uses_memory(objective, routines) and not objective.stores_all and memory_per_class == 0:
        raise UserError("this method replays, but with memory per class 0 the memory stays empty")
