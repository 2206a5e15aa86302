"""Full replay, or incremental joint training: the exact joint loss (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from twofold.benchmarks import Batch
from twofold.benchmarks.base import Rows
from twofold.component import require, require_at_most
from twofold.objectives.base import Draw, Objective, Pass, Role, Term, cross_entropy
from twofold.streams import sample, stream


@dataclass
class Joint(Objective, name="joint"):
    """Full replay: the mean loss over the t tasks so far, with b examples of each past task.

    keep: how many training examples of each past task are stored; none means all of them. The
        authors' code keeps 20,000 of 60,000 on Rotated MNIST (D4).
    """

    keep: int | None = None

    label = "Joint"
    replays = "each"
    stores_all = True

    def __post_init__(self) -> None:
        require(
            self.keep is None or self.keep > 0, f"joint's keep must be above 0, not {self.keep}"
        )
        require_at_most(self, "keep")

    def end_task(self, task: int, chosen: list[Rows]) -> Rows:
        rows = self.benchmark.tasks[task - 1].train
        return sample(rows, self.keep or len(rows), stream(self.seed, "memory", task))

    def passes(self, draw: Draw) -> list[Pass]:
        if draw.old is None:
            return [[Term("new", 1.0, draw.new.x, cross_entropy(draw.new.y), draw.new.tasks)]]
        x, y, _, ids = Batch.joined([draw.new, draw.old])
        t, new, total = draw.task, len(draw.new.y), len(y)
        # Every task has the weight 1/t, divided among its examples. If at least b examples of each
        # past task are stored, all t*b examples have the same weight.
        tasks, examples = {"new": 1, "old": t - 1}, {"new": new, "old": total - new}
        chunks = [np.arange(total)]
        if self.net.has_batch_norm:
            # One forward pass over 20 tasks of 128 images at 84x84 would need some 40 GB. As in
            # the authors' code, there are t passes with all tasks mixed, so that the batch-norm
            # statistics of each pass come from all tasks.
            random = stream(self.seed, "mixing", draw.task, draw.iteration)
            chunks = np.array_split(random.permutation(total), t)
        return [
            [
                Term(
                    role,
                    len(rows) * tasks[role] / (t * examples[role]),
                    x[rows],
                    cross_entropy(y[rows]),
                    None if ids is None else ids[rows],
                )
                for role, rows in _by_role(chunk, new)
                if len(rows)
            ]
            for chunk in chunks
        ]


def _by_role(chunk: Rows, new: int) -> list[tuple[Role, Tensor]]:
    """Return the places of new and of old examples in a chunk.

    Of all examples, the first `new` are new.
    """
    places = torch.from_numpy(chunk)
    return [("new", places[places < new]), ("old", places[places >= new])]
