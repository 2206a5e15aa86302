"""The examples of an iteration: step 1 of the paper's algorithms 2 and 3."""

from __future__ import annotations

import numpy as np

from twofold.benchmarks import Batch, Benchmark
from twofold.benchmarks.base import Rows
from twofold.memories import Memory
from twofold.objectives import Draw, Objective
from twofold.routines import Needs
from twofold.settings import Settings
from twofold.streams import sample, stream


class Sampler:
    """A sampler whose batches are functions of seed, task and iteration only."""

    def __init__(
        self,
        benchmark: Benchmark,
        objective: Objective,
        needs: Needs,
        memory: Memory,
        settings: Settings,
    ) -> None:
        self._benchmark, self._objective, self._needs = benchmark, objective, needs
        self._memory, self._settings = memory, settings
        self._order: tuple[tuple[int, int], Rows] | None = None  # by task and epoch

    def draw(self, task: int, n: int, rows: Rows) -> Draw:
        """Draw the current batch, and the examples that the objective and the routines replay."""
        seed, b, needs = self._settings.seed, self._settings.batch_size, self._needs
        augmentation = stream(seed, "augmentation", task, n)

        def batch(rows: Rows) -> Batch:
            return self._objective.augmented(self._benchmark.train.batch(rows), augmentation)

        draw = Draw(task, n, batch(self._current(task, n, rows)))
        replays = self._objective.replays
        drawn = Needs.REPLAY & ~(Needs.MEMORY | Needs.CURRENT)  # by this method
        if task == 1 or (replays == "nothing" and not needs & drawn):
            return draw
        random, count = stream(seed, "replay", task, n), self._memory.replay or b
        parts: list[Rows] = []
        if replays == "each" or Needs.PER_TASK in needs:
            each = self._memory.draw_each(count, random, task - 1)
            parts = [part for part in each if len(part)]
            if Needs.PER_TASK in needs:
                draw.references = [batch(part) for part in parts]
        if replays == "each":
            old = np.concatenate(parts)
        elif parts and not self._memory.current:  # as in the paper's algorithm 3
            old = sample(np.concatenate(parts), count, random)
        else:
            old = self._memory.draw(count, random)
        if not len(old):
            return draw
        if replays != "nothing" or needs & (Needs.OLD | Needs.FROZEN_OLD):
            draw.old = batch(old)
        return draw

    def _current(self, task: int, n: int, rows: Rows) -> Rows:
        """Return the rows of the n-th batch.

        Every epoch has a new order and no partial batch.
        """
        b = self._settings.batch_size
        epoch, position = divmod(n - 1, len(rows) // b)
        if self._order is None or self._order[0] != (task, epoch):
            random = stream(self._settings.seed, "batches", task, epoch)
            self._order = (task, epoch), random.permutation(rows)
        return self._order[1][position * b : (position + 1) * b]

    def remembered(self, random: np.random.Generator, count: int) -> Batch:
        """Draw examples from the memory."""
        return self._benchmark.train.batch(self._memory.draw(count, random))
