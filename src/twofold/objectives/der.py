"""Dark Experience Replay (Buzzega et al., 2020): replay the network's own earlier logits.

The paper's appendix B:  L = L_c + alpha E_{(x,z) in memory} ||z - h(x)||^2.

Here z are the logits at the time of storing. With the paper's memory this is the end of the
example's task, and with a memory that holds the current task it is the iteration that showed it.
L_c is the cross-entropy on the new task, as in the original and in the authors' code. (The appendix
refers to an L_c that includes replayed examples, but also states that the memory holds logits
instead of labels.) DER++ adds beta CE(memory).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from twofold.augmentation import Augmentation
from twofold.benchmarks.base import Rows
from twofold.choices import Mode
from twofold.component import require, require_at_most
from twofold.objectives.augmenting import Augmenting
from twofold.objectives.base import Draw, Pass, Term, cross_entropy


@dataclass
class Der(Augmenting, name="der"):
    """Dark Experience Replay (DER); with beta > 0, DER++.

    alpha: weight of the distance between logits. The distance is the mean over the outputs, as in
        the code of the original and of this paper. For the sum in the formula, multiply alpha by
        the number of outputs.
    beta: weight of the cross-entropy on replayed examples; above 0 this is DER++.
    augment: `crop` (the paper), `pad` (the authors' code, D7) or `none`.
    """

    alpha: float = 0.5
    beta: float = 0.0
    augment: Augmentation = "crop"

    label = "DER"
    replays = "total"
    lr: ClassVar[Mapping[Mode, float]] = {"offline": 0.01, "online": 0.01}

    def __post_init__(self) -> None:
        require(self.alpha >= 0, f"{self.name}'s alpha must be at least 0, not {self.alpha}")
        require(self.beta >= 0, f"{self.name}'s beta must be at least 0, not {self.beta}")
        require_at_most(self, "alpha", "beta")

    def store(self, rows: Rows) -> None:
        with self.net.evaluating():
            batches = map(self.benchmark.train.batch, _chunks(rows))
            logits = [self.net(batch.x, batch.tasks) for batch in batches]
        if not hasattr(self, "_logits"):  # the number of outputs is known only now
            self._logits = torch.zeros(
                len(self.benchmark.train), logits[0].shape[1], device=logits[0].device
            )
        self._logits[torch.as_tensor(rows, device=self._logits.device)] = torch.cat(logits)

    def passes(self, draw: Draw) -> list[Pass]:
        new = Term("new", 1.0, draw.new.x, cross_entropy(draw.new.y), draw.new.tasks)
        if draw.old is None:
            return [[new]]
        stored, labels, tasks = self._logits[draw.old.rows], draw.old.y, draw.old.tasks

        def dark(logits: Tensor) -> Tensor:
            loss = self.alpha * self._distance(logits, stored, tasks)
            return loss + self.beta * F.cross_entropy(logits, labels) if self.beta else loss

        return [[new, Term("old", 1.0, draw.old.x, dark, tasks)]]

    def _distance(self, logits: Tensor, stored: Tensor, tasks: Tensor | None) -> Tensor:
        """Return the mean over the outputs, with scenario task over those of the own task."""
        if self.net.own is not None:
            own = self.net.own[tasks]
            logits, stored = logits[own], stored[own]
        return F.mse_loss(logits, stored)


def _chunks(rows: Rows, size: int = 500) -> list[Rows]:
    return np.array_split(rows, range(size, len(rows), size))
