"""Evaluation leaves no trace: in inputs, in attributes of a model, in its weights."""

from __future__ import annotations

from collections import deque

import pytest
import torch
from helpers.watching import images, train, watched
from torch import Tensor, nn

import twofold


class InPlace(nn.Module):
    """Changes its inputs in place; with batch norm, so that a second time changes nothing."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        self.norm = norm
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4) if norm else nn.ReLU())
        self.head = nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x.clamp_(-1, 1) if self.norm else x.mul_(2).sub_(1)
        return self.head(self.net(x).flatten(1))


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch-norm"])
def test_a_model_that_changes_its_inputs_is_evaluated_on_the_test_set(norm):
    torch.manual_seed(0)
    tests = {"0": images(10), "80": images(11)}
    kept, net = [x.clone() for x, _ in tests.values()], InPlace(norm).eval()
    with torch.no_grad():
        right = [(net(x.clone()).argmax(1) == y).float().mean() for x, y in tests.values()]
    expected = [float(share * 100) for share in right]
    watch = watched(tests)
    for task in (0, 1):
        watch.task(task)
        for _ in range(2):
            watch(net)
    run = watch.finish()
    assert run.accuracy[:, 0].tolist() == pytest.approx([expected[0]] * 4)
    assert run.accuracy[2:, 1].tolist() == pytest.approx([expected[1]] * 2)
    assert all(torch.equal(x, old) for (x, _), old in zip(tests.values(), kept, strict=True))


class Counting(nn.Module):
    """Trains with what it counts and collects outside of its buffers, in evaluation as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(36, 4)
        self.passes, self.means = 0, deque([0.0], maxlen=3)
        self.seen: dict[int, int] = {}

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        self.means.append(float(x.mean()))
        self.seen[len(x)] = self.seen.get(len(x), 0) + 1
        self.last = x.detach()
        scale = 1 + 0.1 / self.passes + sum(self.means) + 0.01 * len(self.seen)
        return scale * self.layer(x.flatten(1))


def test_attributes_of_a_model_are_kept():
    ends = []
    for watch in (None, watched(schedule="every:3")):
        torch.manual_seed(0)
        net = Counting()
        train(net, watch)
        if watch is not None:
            watch.finish()
        ends.append((net.layer.weight.tolist(), net.passes, net.means, net.seen, len(net.last)))
    assert ends[0] == ends[1]


def test_a_tensor_that_is_no_buffer_and_changes_in_place_is_named():
    class Statistics(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.total += 1
            return super().forward(x.flatten(1))

    net, watch = Statistics(36, 4), watched()
    net.total = torch.zeros(())
    watch.task(0)
    with pytest.raises(twofold.UserError, match="'total' of the model in place: register it as a"):
        watch(net)


def test_a_measure_that_changes_the_weights_is_named():
    def tuned(model: nn.Module) -> float:
        with torch.no_grad():
            model.weight.add_(1)
        return 1.0

    watch = watched({"tuned": tuned})
    watch.task(0)
    with pytest.raises(
        twofold.UserError, match=r"'tuned' changes the weights.*copy\.deepcopy\(model\)"
    ):
        watch(nn.Linear(2, 2))
