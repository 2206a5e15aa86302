"""Experience replay: its weights."""

from __future__ import annotations

import pytest
import torch

from twofold.benchmarks import Batch
from twofold.objectives import Draw
from twofold.objectives.er import Er


@pytest.mark.parametrize("task", [1, 2, 3, 20])
def test_er_weights_add_up_to_the_joint_loss(task):
    batch = Batch(torch.zeros(2, 1), torch.zeros(2).long(), torch.arange(2))
    (terms,) = Er().passes(Draw(task, 1, batch, batch if task > 1 else None))
    weights = {term.role: term.weight for term in terms}
    assert weights["new"] == pytest.approx(1 / task)
    assert sum(weights.values()) == pytest.approx(1)
