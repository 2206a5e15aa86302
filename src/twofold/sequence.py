"""The order of tasks: which task of a benchmark is trained at each place of a sequence."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from twofold.errors import UserError

LONGEST = 1000  # tasks in an order; a longer text is a typing error


def read_order(text: str) -> list[int] | None:
    """Return the tasks that a text such as `1,2,1` names; None if it is no such text."""
    words = text.split(",")
    if len(words) > LONGEST or not all(re.fullmatch(" *[1-9][0-9]{0,8} *", w) for w in words):
        return None
    return [int(word) for word in words]


def order_check(text: str) -> str | None:
    """Return what an order must be, if a text is none."""
    return None if read_order(text) else "numbers of tasks such as 1,2,1"


def firsts(sequence: Sequence[Hashable]) -> list[int]:
    """Return for each place the first place with the same task, both counted from 0."""
    return [sequence.index(task) for task in sequence]


def learned_at(order: Sequence[int] | None, tasks: int) -> list[int]:
    """Return what is learned at each place of a sequence."""
    if order is not None and len(order) != tasks:
        raise UserError(f"the order has {len(order)} tasks, and the curves have {tasks}")
    return list(range(1, tasks + 1) if order is None else order)


def new_places(order: Sequence[int] | None, tasks: int) -> list[int]:
    """Return the places, from 0, at which a task is learned for the first time."""
    return [k for k, first in enumerate(firsts(learned_at(order, tasks))) if k == first]
