"""The options for the length and the order of training, checked together and in one form."""

from __future__ import annotations

from typing import Any

from twofold.errors import UserError
from twofold.sequence import read_order
from twofold.settings import Settings


def settled(
    settings: Settings, benchmark: str, available: int, offline_iterations: int
) -> dict[str, Any]:
    """Return these options such that equal training has equal values, or raise UserError.

    available: how many tasks the benchmark has.
    """
    return _length(settings, offline_iterations) | _order(settings, benchmark, available)


def _length(settings: Settings, offline_iterations: int) -> dict[str, Any]:
    epochs, iterations = settings.epochs, settings.iterations
    if epochs is not None and iterations is not None:
        raise UserError(f"set epochs or iterations, not both: {epochs} and {iterations}")
    if settings.mode == "online":
        if epochs not in (None, 1):
            raise UserError(
                f"online training is one pass over each task, not {epochs}: set the mode to "
                "offline, or leave epochs out"
            )
        epochs = None
    elif iterations is not None:
        iterations = None if iterations >= offline_iterations else iterations
    return {"epochs": epochs, "iterations": iterations}


def _order(settings: Settings, benchmark: str, available: int) -> dict[str, Any]:
    tasks, parts = settings.tasks, settings.parts
    order = _read(settings, benchmark, available)
    length = parts or len(order)
    if tasks is not None and tasks > length:
        how = f" in {parts} parts" if parts else " in this order" if settings.order else ""
        raise UserError(f"{benchmark}{how} has {length} tasks, not {tasks}")
    tasks = None if tasks == length else tasks
    usual = order == list(range(1, len(order) + 1))
    if parts:  # of fewer tasks they are parts of less data
        usual = usual and len(order) == available
    elif usual and tasks is None and len(order) < available:
        tasks = len(order)
    return {"tasks": tasks, "order": None if usual else ",".join(map(str, order))}


def _read(settings: Settings, benchmark: str, available: int) -> list[int]:
    """Return the tasks of the benchmark in the order of the settings."""
    if settings.order is None:
        return list(range(1, available + 1))
    order = read_order(settings.order) or []  # the option's check has read it
    for task in order:
        if task > available:
            raise UserError(f"{benchmark} has {available} tasks, so order can't name {task}")
    if settings.parts and len(set(order)) < len(order):
        raise UserError(
            f"parts divide the data of each task once, and order {settings.order} repeats one"
        )
    return order
