"""The memory: stored examples as rows of the training pool, with a part per past task."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.benchmarks import Task
from twofold.benchmarks.base import Rows
from twofold.choices import Grouping


class Memory:
    """The stored examples of past tasks: `parts[k]` holds the rows of the (k+1)-th task.

    Every training example gets a random priority once, and a group keeps the examples with the
    highest priorities. This is a uniform sample, which is the same for all methods with one seed.

    per_class: how many examples a group may hold.
    grouping: what a group is. `class-task`: a class in a task (the paper). `class`: a class over
        all tasks, so that new tasks displace old ones, as in a reservoir (the authors' code for
        Rotated MNIST, D1). The two differ only if tasks share classes.
    """

    def __init__(self, labels: Rows, per_class: int, grouping: Grouping = "class-task") -> None:
        self.parts: list[Rows] = []
        self._labels, self._per_class, self._grouping = labels, per_class, grouping
        self._priority = np.zeros(len(labels))
        self._rows = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def choose(self, task: Task, random: np.random.Generator) -> list[Rows]:
        """Return the examples of a task to store, class by class, highest priority first."""
        self._priority[task.train] = random.random(len(task.train))
        return [self._top(task.train[self._labels[task.train] == c]) for c in task.classes]

    def add(self, rows: Rows) -> None:
        """Store these rows of the task that has ended."""
        self.parts.append(rows)
        if self._grouping == "class":
            stored = np.concatenate(self.parts)
            labels = self._labels[stored]
            kept = np.concatenate([self._top(stored[labels == c]) for c in np.unique(labels)])
            self.parts = [part[np.isin(part, kept)] for part in self.parts]
        self._rows = np.concatenate(self.parts)

    def draw(self, count: int, random: np.random.Generator) -> Rows:
        """Draw a uniform sample of all parts together, without repeats."""
        return sample(self._rows, count, random)

    def draw_each(self, count: int, random: np.random.Generator) -> list[Rows]:
        """Draw a uniform sample of each part."""
        return [sample(part, count, random) for part in self.parts]

    def state(self) -> dict[str, Any]:
        return {"parts": self.parts, "priority": self._priority}

    def restore(self, state: dict[str, Any]) -> None:
        self.parts, self._priority = state["parts"], state["priority"]
        self._rows = np.concatenate([self._rows, *self.parts])

    def _top(self, rows: Rows) -> Rows:
        return rows[np.argsort(-self._priority[rows], kind="stable")[: self._per_class]]


def sample(rows: Rows, count: int, random: np.random.Generator) -> Rows:
    """Draw `count` distinct rows, or return all rows if there are no more."""
    if len(rows) <= count:
        return rows
    return rows[random.choice(len(rows), count, replace=False, shuffle=False)]
