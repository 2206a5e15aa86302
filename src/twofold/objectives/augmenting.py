"""Objectives that augment images in training."""

from __future__ import annotations

import numpy as np

from twofold.augmentation import Augmentation, augment
from twofold.benchmarks import Batch, Benchmark
from twofold.errors import UserError
from twofold.models import FlatModel
from twofold.objectives.base import Objective


class Augmenting(Objective):
    """An objective with the option `augment`, whose place among the options a subclass decides."""

    augment: Augmentation

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        super().start(benchmark, net, seed)
        # An error, since a run records how its data were augmented.
        shape = list(benchmark.train.batch(benchmark.tasks[0].train[:1]).x.shape[1:])
        if self.augment != "none" and len(shape) != 3:
            raise UserError(
                f"{self.name} augments images, and {benchmark.name!r} has inputs of shape {shape}: "
                f"write {self.name}(augment=none)"
            )

    def augmented(self, batch: Batch, random: np.random.Generator) -> Batch:
        return batch._replace(x=augment(batch.x, self.augment, random))
