"""Experience replay: its weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.objectives import drawn, trained, two_logits, value
from torch.nn import functional as F

import twofold
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


def test_over_the_classes_seen_so_far():
    """The softmax leaves later classes out; the default has the identity that it had."""
    training, _ = trained(Er(classes="seen"))
    draw = drawn(training.benchmark, 2, np.concatenate(training.memory.parts))
    (terms,) = training.objective.passes(draw)
    new, old = two_logits(seed=1)
    expected = 0.5 * F.cross_entropy(new[:, :6], draw.new.y)
    expected = expected + 0.5 * F.cross_entropy(old[:, :6], draw.old.y)
    torch.testing.assert_close(value(terms, new, old), expected)
    plain = twofold.configure("rotated-mnist", "er")
    assert plain.components == [("er", {})]
    assert twofold.configure("rotated-mnist", "er(classes=all)").identity() == plain.identity()
    seen = twofold.configure("rotated-mnist", "er(classes=seen)")
    assert seen.identity() != plain.identity()
    assert seen.make_components()[0] == Er(classes="seen")
