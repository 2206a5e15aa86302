"""The examples of an iteration: step 1 of the paper's algorithms 2 and 3."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from twofold.benchmarks import Batch, Benchmark
from twofold.benchmarks.base import Rows
from twofold.blurring import Blur
from twofold.course import Course
from twofold.memories import Memory
from twofold.objectives import Draw, Objective
from twofold.routines import Needs
from twofold.settings import Settings
from twofold.streams import sample, stream

KEPT = 3  # orders: of a task, and with blur of its neighbours


class Sampler:
    """A sampler whose batches are functions of seed, task and iteration only."""

    def __init__(
        self,
        benchmark: Benchmark,
        objective: Objective,
        needs: Needs,
        memory: Memory,
        settings: Settings,
        course: Course,
    ) -> None:
        self._benchmark, self._objective, self._needs = benchmark, objective, needs
        self._memory, self._settings, self._course = memory, settings, course
        self._orders: dict[tuple[int, int], Rows] = {}  # by task and epoch; the latest ones
        blur, seed = settings.blur, settings.seed
        self._blur = Blur(blur, course.lengths, seed) if blur else None

    def draw(self, task: int, n: int, rows: Rows) -> Draw:
        """Draw the current batch, and the examples that the objective and the routines replay."""
        seed, b, needs = self._settings.seed, self._settings.batch_size, self._needs
        augmentation = stream(seed, "augmentation", task, n)

        def batch(rows: Rows) -> Batch:
            return self._objective.augmented(self._benchmark.train.batch(rows), augmentation)

        t, iteration = self._course.told(task, n)
        draw = Draw(t, iteration, batch(self._current(task, n, rows)))
        replays = self._objective.replays
        drawn = Needs.REPLAY & ~(Needs.MEMORY | Needs.CURRENT)  # by this method
        if t == 1 or (replays == "nothing" and not needs & drawn):
            return draw
        random, count = stream(seed, "replay", task, n), self._memory.replay or b
        parts: list[Rows] = []
        if replays == "each" or Needs.PER_TASK in needs:
            each = self._memory.draw_each(count, random, t - 1)
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
        """Return the rows of the n-th batch."""
        if self._blur is None:
            return self._batch(task, n, rows)

        def batch(other: int, n: int) -> Rows:
            return self._batch(other, n, rows if other == task else self._course.rows(other))

        return self._blur.mixed(task, n, batch)

    def _batch(self, task: int, n: int, rows: Rows) -> Rows:
        """Return the rows of the n-th batch without blur.

        Every epoch has a new order and no partial batch. A stream in a given order keeps it.
        """
        b = self._settings.batch_size
        epoch, position = divmod(n - 1, len(rows) // b)
        if not self._benchmark.ordered:
            rows = self._shuffled(task, epoch, rows)
        return rows[position * b : (position + 1) * b]

    def _shuffled(self, task: int, epoch: int, rows: Rows) -> Rows:
        if (task, epoch) not in self._orders:
            while len(self._orders) >= KEPT:
                del self._orders[next(iter(self._orders))]
            random = stream(self._settings.seed, "batches", task, epoch)
            self._orders[task, epoch] = random.permutation(rows)
        return self._orders[task, epoch]

    def examples(self, place: tuple[int, int]) -> Callable[[int], Batch]:
        """Return a function that draws this many examples from the memory, as `Step.random` draws.

        The generator is made when it is first needed: few iterations draw, and it takes time.
        """
        seed = self._settings.seed
        random = functools.cache(functools.partial(stream, seed, "routine", *place))
        return lambda count: self.remembered(random(), count)

    def remembered(self, random: np.random.Generator, count: int) -> Batch:
        """Draw examples from the memory."""
        return self._benchmark.train.batch(self._memory.draw(count, random))
