"""Memories, which decide what is stored of the examples seen, as rows of the training pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from twofold.benchmarks import Task
from twofold.benchmarks.base import Rows
from twofold.component import Component, plain, require
from twofold.streams import sample

Features = Callable[[Rows], Tensor]  # from rows to what the last layer sees of them


@dataclass
class Memory(Component, kind="memory"):
    """The stored examples, and the policy that chooses them. Subclass it and write `keep`.

    `parts[k]` holds the stored rows of the (k+1)-th task. `keep` may use these attributes, which
    are arrays over all training examples: `labels`, `priority` (a random number from 0 to 1, drawn
    once per example and alike for all methods with one seed), `arrival` (how many examples had been
    seen when it came, counted from 1) and `task_of`; and `features`, a function of rows.

    current: whether examples of the task being learned are stored as they come, and replayed; or
        else at the end of their task.
    replay: examples per replay batch; none means as many as in a batch.
    """

    current: bool = field(default=False, kw_only=True)
    replay: int | None = field(default=None, kw_only=True)

    ahead: ClassVar[bool] = False  # whether the choice is made at the start of a task, by `choose`
    context = ("labels", "features", "_rows")

    def __post_init__(self) -> None:
        require(
            self.replay is None or self.replay > 0,
            f"{self.name}'s replay must be above 0, not {self.replay}",
        )

    def start(self, labels: Rows, features: Features | None = None) -> None:
        """Prepare for a run. `labels` are those of the whole training pool."""
        self.labels, self.features = labels, features
        self.parts: list[Rows] = []
        self.priority = np.zeros(len(labels))
        self.arrival = np.zeros(len(labels), np.int64)
        self.task_of = np.zeros(len(labels), np.int64)
        self._rows = np.empty(0, np.int64)

    def keep(self, rows: Rows) -> Rows:
        """Return the rows to keep of these, which are all that are stored and all new ones."""
        raise NotImplementedError

    def quota(self) -> int | None:
        """Return how many examples a class may have; None if the policy sets no such number."""
        return None

    def share(self, classes: int) -> int:
        """Return about how many examples each of this number of classes has.

        It is at least two, so that `bic` can divide them.
        """
        return self.quota() or 0

    def __len__(self) -> int:
        return len(self._rows)

    def choose(self, task: Task, random: np.random.Generator) -> list[Rows]:
        """Draw the priorities of a task's examples, and return the share of each class.

        The share has the highest priorities, the highest first.
        """
        self.priority[task.train] = random.random(len(task.train))
        share = self.share(len(np.unique(self.labels)))
        return [self.first(task.train[self.labels[task.train] == c], share) for c in task.classes]

    def see(self, task: int, rows: Rows) -> Rows:
        """Take in the rows of an iteration, and return those that are stored by now and were not.

        An example counts when it is first seen.
        """
        new = rows[self.arrival[rows] == 0]
        self.arrival[new] = self.arrival.max(initial=0) + 1 + np.arange(len(new))
        self.task_of[new] = task
        return self.add(task, new) if self.current and len(new) else new[:0]

    def seen(self, task: int, rows: Rows) -> Rows:
        """Return those of these rows that were first seen in a task."""
        first: Rows = rows[(self.arrival[rows] > 0) & (self.task_of[rows] == task)]
        return first

    def add(self, task: int, rows: Rows) -> Rows:
        """Store rows of a task as far as the policy keeps them, and return those."""
        self.task_of[rows] = task
        self.parts += [np.empty(0, np.int64)] * (task - len(self.parts))
        self.parts[task - 1] = np.concatenate([self.parts[task - 1], rows])
        kept = np.zeros(len(self.labels), bool)
        kept[self.keep(np.concatenate(self.parts))] = True
        self.parts = [part[kept[part]] for part in self.parts]
        self._rows = np.concatenate(self.parts)
        return rows[kept[rows]]

    def draw(self, count: int, random: np.random.Generator) -> Rows:
        """Draw a uniform sample of all parts together, without repeats."""
        return sample(self._rows, count, random)

    def draw_each(
        self, count: int, random: np.random.Generator, tasks: int | None = None
    ) -> list[Rows]:
        """Draw a uniform sample of each part, or of the first tasks' parts."""
        return [sample(part, count, random) for part in self.parts[:tasks]]

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._rows = np.concatenate([np.empty(0, np.int64), *self.parts])

    def first(
        self,
        rows: Rows,
        count: int | None = None,
        *,
        by: NDArray[Any] | None = None,
        each: NDArray[Any] | None = None,
        total: int | None = None,
    ) -> Rows:
        """Return the rows with the highest values, the highest first.

        count: at most this many rows, of each group if there are groups.
        by: the values, over all training examples (default: the priorities).
        each: the groups, over all training examples.
        total: at most this many rows of all groups together, taken evenly.
        """
        value = (self.priority if by is None else by)[rows]
        rows = rows[np.argsort(-value, kind="stable")]
        if each is not None:
            place = _places(each[rows])
            order = np.argsort(place, kind="stable")
            rows = rows[order] if count is None else rows[order][place[order] < count]
        elif count is not None:
            rows = rows[:count]
        return rows[:total]

    def text(self) -> str:
        """Return the text of this memory: `reservoir(2000)`."""
        said = []
        for place, (name, option) in enumerate(self.options().items()):
            value = getattr(self, name)
            if value == option.default and (option.kw_only or value is None):
                continue
            said.append(plain(value) if place == 0 else f"{name}={plain(value)}")
        return f"{self.name}({','.join(said)})" if said else self.name


def _places(groups: NDArray[Any]) -> Rows:
    """Return the place of each entry among those of its group, counted from 0."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    lengths = np.diff(np.r_[first, len(ordered)])
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - np.repeat(first, lengths)
    return places
