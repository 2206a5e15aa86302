"""Blurred boundaries: around a switch, batches mix the examples of the two neighbouring tasks.

Of two tasks with N and N' iterations, the last w of the first and the first w of the second are
blurred, with w = blur / 2 min(N, N'). The d-th iteration before the switch and the d-th after it
exchange examples. Each of the b places of their batches is exchanged with the probability

    p_d = 1/2 (1 - (d - 1/2) / w),   d = 1, ..., w

so the expected share of the neighbouring task rises linearly from 0 at the edge of the window to
1/2 at the switch, and falls from there to 0. No example is lost or seen more often than without
blur: online, each is seen once. At most half of a task is blurred at either end, so the windows of
two switches do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from twofold.errors import UserError
from twofold.streams import stream

Rows = NDArray[np.int64]


class Blur:
    """The exchange of examples around the switches of a run.

    lengths: the iterations of each task.
    """

    def __init__(self, share: float, lengths: Sequence[int], seed: int) -> None:
        self._lengths, self._seed = lengths, seed
        self.widths = [round(share / 2 * min(pair)) for pair in pairwise(lengths)]  # w, per switch
        if not any(self.widths):
            raise UserError(
                f"blur {share:g} changes nothing: there is one task only"
                if len(lengths) == 1
                else f"blur {share:g} changes nothing: half of that share of {max(lengths)} "
                "iterations rounds to none"
            )

    def partner(self, task: int, n: int) -> tuple[int, int, int] | None:
        """Return the iteration that exchanges examples with the n-th of a task, if there is one.

        It is a task and an iteration, both counted from 1, and the distance d of both from the
        switch between them.
        """
        before, after = self._lengths[task - 1] - n + 1, n
        if task < len(self._lengths) and before <= self.widths[task - 1]:
            return task + 1, before, before
        if task > 1 and after <= self.widths[task - 2]:
            return task - 1, self._lengths[task - 2] - after + 1, after
        return None

    def mixed(self, task: int, n: int, batch: Callable[[int, int], Rows]) -> Rows:
        """Return the rows of the n-th iteration of a task.

        batch: a function that returns the rows of any iteration without blur.
        """
        own, partner = batch(task, n), self.partner(task, n)
        if partner is None:
            return own
        other_task, other_n, distance = partner
        switch = min(task, other_task)
        chances = stream(self._seed, "blur", switch, distance).random(len(own))
        width = self.widths[switch - 1]
        return np.where(exchanged(chances, distance, width), batch(other_task, other_n), own)


def exchanged(chances: NDArray[np.float64], distance: int, width: int) -> NDArray[np.bool_]:
    """Tell which places are exchanged, given a uniform random number for each of them."""
    return chances < 0.5 * (1 - (distance - 0.5) / width)
