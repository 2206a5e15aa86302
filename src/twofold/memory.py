"""The memory: stored examples, a part for each past task, kept as rows of the training pool."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.benchmarks import Task
from twofold.benchmarks.base import Rows
from twofold.choices import Grouping


class Memory:
    """`parts[k]` holds the rows stored of the (k+1)-th task.

    Every training example is given a random priority once, and a group keeps the examples with
    the highest: a uniform sample, drawn alike for all methods with one seed.

    per_class: how many examples a group may hold.
    grouping: what a group is. `class-task`: a class in a task (the paper). `class`: a class over
        all tasks, so that old tasks give way to new ones, a reservoir as in the authors' code for
        Rotated MNIST (D1). They differ only where tasks share classes.
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
            everything = np.concatenate(self.parts)
            labels = self._labels[everything]
            kept = np.concatenate([self._top(everything[labels == c]) for c in np.unique(labels)])
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
    """Draw `count` distinct rows, or all of them if there are no more."""
    if len(rows) <= count:
        return rows
    return rows[random.choice(len(rows), count, replace=False, shuffle=False)]
