"""The course of training: how long each task is, from which rows, and what a learner is told."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from twofold.benchmarks import Benchmark
from twofold.benchmarks.base import Rows
from twofold.memories import Memory
from twofold.objectives import Objective
from twofold.sequence import firsts
from twofold.settings import Settings
from twofold.streams import stream


class Course:
    """The tasks of a run in their order. A task that returns is a task of its own here."""

    def __init__(
        self, benchmark: Benchmark, objective: Objective, memory: Memory, settings: Settings
    ) -> None:
        self._benchmark, self._objective = benchmark, objective
        self._memory, self._settings = memory, settings
        self.tasks = benchmark.tasks[: settings.tasks]
        self._firsts = firsts([id(task) for task in self.tasks])
        self._rows: dict[int, Rows] = {}  # by task

    def __len__(self) -> int:
        return len(self.tasks)

    def returns(self, task: int) -> bool:
        """Tell whether the task at this place (from 1) was there before."""
        return self._firsts[task - 1] < task - 1

    def choose(self, task: int) -> list[Rows]:
        """Let the memory draw its priorities in a task, which a return leaves as they were."""
        random = stream(self._settings.seed, "memory", self._firsts[task - 1] + 1)
        return self._memory.choose(self.tasks[task - 1], random)

    def rows(self, task: int) -> Rows:
        """Return the rows that a task is trained on; an objective may hold examples out."""
        if task not in self._rows:
            held_out = self._objective.held_out(self.choose(task))
            train = self.tasks[task - 1].train
            self._rows[task] = train[~np.isin(train, held_out)] if len(held_out) else train
        return self._rows[task]

    def iterations(self, examples: int) -> int:
        """Return the iterations of a task with this number of examples to train on."""
        return self._settings.iterations_of(examples, self._benchmark.offline_iterations)

    @cached_property
    def lengths(self) -> list[int]:
        """The iterations of each task."""
        return [self.iterations(len(self.rows(task))) for task in range(1, len(self) + 1)]

    def shown(self, task: int) -> Rows:
        """Return the rows that the batches of a task may have shown."""
        around = range(task - 2, task + 1) if self._settings.blur else [task - 1]
        nearby = [self.tasks[place] for place in around if 0 <= place < len(self)]
        return np.concatenate([each.train for each in {id(each): each for each in nearby}.values()])

    @property
    def mixes(self) -> bool:
        """Whether the task that is trained does not tell which classes there have been."""
        return bool(self._settings.blur or self._settings.task_free)

    # In a task-free stream, all that was seen before is one task, which the memory holds, and the
    # batch is a second one. So the learner's task is 1 while the memory is empty, and then 2.

    def told(self, task: int, n: int) -> tuple[int, int]:
        """Return task and iteration as the objective and the routines are told them."""
        if not self._settings.task_free:
            return task, n
        return 2 if len(self._memory) else 1, sum(self.lengths[: task - 1]) + n

    def told_length(self, examples: int) -> int:
        """Return the iterations of a task as routines are told them."""
        return sum(self.lengths) if self._settings.task_free else self.iterations(examples)

    def part(self, task: int) -> int:
        """Return the part of the memory to which the examples of a task belong."""
        return 1 if self._settings.task_free else task
