"""DER: its loss written out, and the logits that it replays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.objectives import OUTPUTS, drawn, trained, two_logits, value
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.errors import UserError
from twofold.objectives import Draw
from twofold.objectives.der import Der


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.0), (0.3, 0.0), (0.2, 0.7)])
def test_der_loss(alpha, beta):
    stored: dict[int, Tensor] = {}

    class Watched(Der):
        def end_task(self, task, chosen):
            rows = super().end_task(task, chosen)
            self.net.module.eval()
            with torch.no_grad():
                logits = self.net(self.benchmark.train.batch(rows).x)
            self.net.module.train()
            stored.update(zip(rows.tolist(), logits, strict=True))
            return rows

    objective = Watched(alpha, beta)
    training, _ = trained(objective)
    memory = np.concatenate(training.memory.parts)[::5]  # of both tasks
    draw = drawn(training.benchmark, 3, memory)
    (terms,) = objective.passes(draw)
    new, old = two_logits(seed=1)
    z = torch.stack([stored[row] for row in memory[:10].tolist()])
    distance = sum((z[i] - old[i]).square().sum() / OUTPUTS for i in range(10)) / 10
    expected = F.cross_entropy(new, draw.new.y) + alpha * distance
    expected = expected + beta * F.cross_entropy(old, draw.old.y)
    torch.testing.assert_close(value(terms, new, old), expected)


@pytest.mark.parametrize("norm", [False, True])
def test_der_replays_the_plain_logits_of_the_end_of_each_examples_task(norm):
    ends: list[nn.Module] = []

    class Watched(Der):
        def end_task(self, task, chosen):
            ends.append(self.net.copy())  # in eval mode
            return super().end_task(task, chosen)

    objective = Watched(alpha=1.0, augment="crop")
    training, _ = trained(objective, class_benchmark(norm=norm))
    assert training.net.module.training
    distances = torch.zeros(2, 2)
    for k, part in enumerate(training.memory.parts):
        draw = drawn(training.benchmark, 3, part)
        ((_, old),) = objective.passes(draw)
        for end, module in enumerate(ends):
            distances[k, end] = old.loss(module(draw.old.x))  # images as they are stored
    torch.testing.assert_close(distances.diagonal(), torch.zeros(2), atol=1e-9, rtol=0)
    assert distances[0, 1] > 1e-4
    assert distances[1, 0] > 1e-4


def test_der_in_the_first_task_is_cross_entropy():
    batch = class_benchmark().train.batch(np.arange(10))
    ((only,),) = Der().passes(Draw(1, 1, batch))
    new, _ = two_logits(0)
    torch.testing.assert_close(only.weight * only.loss(new), F.cross_entropy(new, batch.y))


@pytest.mark.parametrize("option", ["alpha", "beta"])
def test_weights_are_not_negative(option):
    with pytest.raises(UserError, match=f"der's {option} must be at least 0"):
        Der(**{option: -1.0})
