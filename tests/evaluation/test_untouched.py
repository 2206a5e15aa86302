"""Evaluation leaves no trace: in inputs, in attributes of a model, in its weights."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from helpers.watching import TESTS, everything, images, measured, network, train, watched
from torch import Tensor, nn

import twofold
from twofold.models.view import parts_of

DRAWS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "numpy": lambda: np.random.rand(),
    "a normal number": lambda: np.random.randn(),  # every second one needs no new words
    "two normal numbers": lambda: np.random.randn(2),
    "all words": lambda: np.random.bytes(4 * 624),
    "a seed": lambda: np.random.seed(5),
    "python": lambda: random.random(),
    "a normal number of python": lambda: random.gauss(0, 1),
    "torch": lambda: torch.rand(1),
}


class Drawing(nn.Module):
    """Draws in evaluation."""

    def __init__(self, draw: Callable[[], object]) -> None:
        super().__init__()
        self.net, self.draw = network(), draw

    def forward(self, x: Tensor) -> Tensor:
        self.draw()
        return self.net(x)


@pytest.fixture
def _numpy() -> Iterator[None]:
    """Leave numpy's generator to later tests as it was."""
    generator, state = np.random.get_bit_generator(), np.random.get_state(legacy=False)
    yield
    np.random.set_bit_generator(generator)
    np.random.set_state(state)


def next_draws() -> list[float]:
    """Draw from all generators: a normal number that is left from a pair is among them."""
    numbers = [*np.random.randn(3), np.random.rand(), random.gauss(0, 1), random.random()]
    return [*numbers, *torch.rand(2).tolist()]


@pytest.mark.usefixtures("_numpy")
@pytest.mark.parametrize("left", [0, 1], ids=["no-normal-left", "a-normal-left"])
@pytest.mark.parametrize("drawer", ["model", "measure"])
@pytest.mark.parametrize("draw", DRAWS)
def test_draws_of_a_model_or_a_measure_are_not_noticed(draw, drawer, left):
    def nothing() -> None:
        pass

    def measure(model: nn.Module) -> float:
        DRAWS[draw]()
        return 1.0

    results = []
    for watching in (False, True):
        net = Drawing(DRAWS[draw] if drawer == "model" else nothing)
        watch = watched(TESTS if drawer == "model" else {"a": measure, "b": measure})
        random.seed(1)
        np.random.seed(2)
        torch.manual_seed(3)
        np.random.randn(left)
        for task in (0, 1):
            if watching:
                watch.task(task)
            for _ in range(2):
                np.random.randn(2)  # and as many are left as before
                before = everything(net)
                if watching:
                    watch(net)
                assert everything(net) == before
        results.append(next_draws())
    assert results[0] == results[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("_numpy")
@pytest.mark.parametrize("draw", ["nothing", "numpy", "a normal number"])
def test_an_unusual_generator_of_numpy_is_kept(draw):
    np.random.set_bit_generator(np.random.PCG64(1))
    values = []
    for _ in range(2):  # with and without a normal number that is left from a pair
        np.random.randn(1)
        state = np.random.get_state(legacy=False)
        watch = watched({"0": TESTS["0"], "drawn": lambda model: np.random.randn()})
        for task in (0, 1):
            watch.task(task)
            watch(Drawing(DRAWS[draw]))
        assert np.random.get_state(legacy=False) == state
        values.append(watch.finish().accuracy[1, 1])
    assert values[0] == values[1]  # what a measure draws depends on the seed and the iteration


class Negated(nn.Module):
    """Counts its passes as a number and, if it has the buffer, in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        if "calls" in self._buffers:
            self.calls += 1
        return -x


def test_what_changes_between_two_calls_is_kept_and_evaluated():
    net, test = network(), images(10, 300)
    watch, results, lengths = watched({"0": test}), [], []

    def hook(part: nn.Module, x: tuple[Tensor], y: Tensor) -> None:
        lengths.append(len(y))

    changes: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "a layer is added": lambda: net.append(Negated()),
        "a buffer is added": lambda: net[6].register_buffer("calls", torch.zeros(1)),
        "a layer is put in evaluation mode": lambda: net[1].eval(),
        "and in training mode": lambda: net[1].train(),
        "a layer is replaced": lambda: net.__setitem__(2, nn.Softmax(1)),
        "a hook is added": lambda: net[0].register_forward_hook(hook),
    }
    watch.task(0)
    for name, change in changes.items():
        change()
        before, passes = everything(net), [vars(part).get("passes") for part in net]
        watch(net)
        assert everything(net) == before, name
        assert [vars(part).get("passes") for part in net] == passes, name
        assert lengths == ([300] if name == "a hook is added" else []), name
        results.append(measured(net, *test))
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(results)
    assert len(set(results)) == 3


def test_the_parts_of_a_module_are_its_modules_in_order():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.Sequential(nn.ReLU(), shared), nn.ModuleList([nn.Tanh()]))
    net.nothing = None
    net.register_module("none", None)
    net[1].inner = nn.ModuleDict({"a": shared, "b": nn.Sequential(net[2], nn.ReLU())})
    for module in (net, network(), shared):
        assert parts_of(module) == list(module.modules())


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
