"""DER++: DER with replayed labels, and logits of the moment in which an example is stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.objectives import drawn, trained, two_logits, value
from torch.nn import functional as F

import twofold
from twofold.errors import UserError
from twofold.objectives import Der, Derpp


def test_it_is_der_with_labels():
    one, other = (trained(objective)[0] for objective in (Derpp(), Der(beta=0.5)))
    assert torch.equal(one.net.values, other.net.values)
    assert Derpp(0.3, 0.2).explicit() == Der(0.3, 0.2).explicit()


def test_the_loss_is_that_of_the_equation():
    training, _ = trained(Derpp(0.3, 0.7))
    memory = np.concatenate(training.memory.parts)[::5]
    draw = drawn(training.benchmark, 3, memory)
    (terms,) = training.objective.passes(draw)
    new, old = two_logits(seed=1)
    stored = training.objective._logits[draw.old.rows]
    expected = F.cross_entropy(new, draw.new.y) + 0.3 * (old - stored).square().mean()
    expected = expected + 0.7 * F.cross_entropy(old, draw.old.y)
    torch.testing.assert_close(value(terms, new, old), expected)


def test_with_the_current_task_in_memory_logits_are_those_of_the_iteration_that_showed_it():
    seen: dict[int, torch.Tensor] = {}

    class Watched(Derpp):
        def store(self, rows):
            super().store(rows)
            net = self.net.copy()
            with torch.no_grad():
                logits = net(self.benchmark.train.batch(rows).x)
            seen.update(zip(rows.tolist(), logits, strict=True))

    training, _ = trained(
        Watched(), class_benchmark(), memory="reservoir(25)", memory_per_class=100
    )
    for row in np.concatenate(training.memory.parts):
        torch.testing.assert_close(training.objective._logits[row], seen[int(row)])


def test_wrong_weights_are_refused():
    with pytest.raises(UserError, match=r"^derpp's beta must be at least 0"):
        twofold.Method.parse("derpp(beta=-1)")
