"""Networks that keep state of their own, or change their inputs, are evaluated as they are."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from torch import Tensor, nn

from twofold import Benchmark, run
from twofold.experiments.config import configure
from twofold.experiments.execution import run_in_store
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.training import Training


class Network(nn.Module):
    """Centres its features on a running mean, which `_update` keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.last = nn.Linear(256, 9)
        self.register_buffer("mean", torch.zeros(256))
        self.start()

    def start(self) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.first(self.prepared(x)))).flatten(1)
        if self.training:
            self.update(features.detach())
        return self.last(features - self.running())

    def prepared(self, x: Tensor) -> Tensor:
        return x

    def update(self, features: Tensor) -> None:
        self.mean.mul_(0.5).add_(features.mean(0), alpha=0.5)

    def running(self) -> Tensor:
        return self.mean


class Assigned(Network):
    def update(self, features: Tensor) -> None:
        self.mean = self.mean.mul(0.5).add(features.mean(0), alpha=0.5)


class AssignedInEvaluation(Assigned):
    """It assigns a new buffer in evaluation as well, which must leave no trace in training."""

    def running(self) -> Tensor:
        now = self.mean
        if not self.training:
            self.mean = self.mean * 0
        return now


class PlainTensor(Network):
    def start(self) -> None:
        self.kept = torch.zeros(256)

    def update(self, features: Tensor) -> None:
        self.kept = self.kept.mul(0.5).add(features.mean(0), alpha=0.5)

    def running(self) -> Tensor:
        return self.kept


class Number(Network):
    """Keeps a buffer of one number."""

    def start(self) -> None:
        self.register_buffer("level", torch.zeros((), dtype=torch.float64))

    def update(self, features: Tensor) -> None:
        self.level.mul_(0.5).add_(0.5 * float(features.mean()))

    def running(self) -> Tensor:
        return torch.full((256,), float(self.level))


class PlainNumber(Number):
    def start(self) -> None:
        self.level = 0.0

    def update(self, features: Tensor) -> None:
        self.level = 0.5 * self.level + 0.5 * float(features.mean())


class Late(PlainNumber):
    """Its number changes after the first seven passes only."""

    def start(self) -> None:
        self.level, self.seen = 0.0, [0]

    def update(self, features: Tensor) -> None:
        self.seen[0] += 1
        if self.seen[0] > 7:
            super().update(features)


class LateBuffer(Number):
    def start(self) -> None:
        super().start()
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def update(self, features: Tensor) -> None:
        self.seen.add_(1)
        if int(self.seen) > 7:
            super().update(features)


class Turning(Network):
    """Turns its logits round after a while."""

    def start(self) -> None:
        self.register_buffer("sign", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.first(x))).flatten(1)
        if self.training:
            self.update(features)
        return self.last(features) * self.sign

    def update(self, features: Tensor) -> None:
        self.mean[0] += 1
        if self.mean[0] == 20:
            self.sign.neg_()


class TurningNumber(Turning):
    def start(self) -> None:
        self.sign = 1.0

    def update(self, features: Tensor) -> None:
        self.mean[0] += 1
        if self.mean[0] == 20:
            self.sign = -self.sign


class Doubling(Network):
    def prepared(self, x: Tensor) -> Tensor:
        return x * 2


class DoublingInPlace(Network):
    def prepared(self, x: Tensor) -> Tensor:
        return x.mul_(2)


class Remembers(Network):
    """Keeps its features, with their graph, for somebody to look at."""

    def running(self) -> Tensor:
        self.last_inputs = [self.mean + self.last.weight.sum()]
        return self.mean


def benchmark(model: type[nn.Module]) -> Benchmark:
    toy = class_benchmark()
    return Benchmark(**{**vars(toy), "model": model})


def flat(model: type[nn.Module]):
    """The same network without convolutions, whose test images are kept."""

    def made() -> nn.Module:
        network = model()
        network.first, network.norm = nn.Flatten(), nn.BatchNorm1d(192)
        network.register_buffer("mean", torch.zeros(192))
        network.last = nn.Linear(192, 9)
        return network

    return made


@functools.cache  # several networks are compared with the same sound one
def curves(model, **options) -> dict[str, np.ndarray]:
    settings = {"batch_size": 16, "memory_per_class": 10, "eval_size": 30}
    trained_run = run(benchmark(model), options.pop("method", "er"), **settings, **options)
    return {name: np.asarray(column) for name, column in trained_run.columns.items()}


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], name)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("odd", "sound"),
    [
        (Assigned, Network),
        (AssignedInEvaluation, Network),
        (PlainTensor, Network),
        (PlainNumber, Number),
        (Late, LateBuffer),
        (TurningNumber, Turning),
        (DoublingInPlace, Doubling),
        (Remembers, Network),
        (flat(DoublingInPlace), flat(Doubling)),
    ],
)
def test_a_network_with_state_of_its_own_is_evaluated_as_it_is(odd, sound, precision):
    assert_same(curves(odd, eval_precision=precision), curves(sound, eval_precision=precision))


@pytest.mark.parametrize("method", ["bic", "er+ema", "er+sam", "er+gem"])
@pytest.mark.parametrize(("odd", "sound"), [(Assigned, Network), (DoublingInPlace, Doubling)])
def test_it_is_so_whatever_else_forwards_the_network(odd, sound, method):
    assert_same(curves(odd, method=method), curves(sound, method=method))


def test_evaluation_leaves_no_trace_in_such_a_network():
    every, sparse = (
        curves(AssignedInEvaluation, eval_schedule=schedule) for schedule in ("every", "every:12")
    )
    np.testing.assert_array_equal(every["loss"], sparse["loss"])


def test_a_sound_network_is_still_folded():
    toy = class_benchmark()
    config = configure(toy, "er", batch_size=16, memory_per_class=10)
    training = Training(toy, *config.make_components(), config)
    assert not training.net.keeps_state
    assert type(training.evaluator._exact).__name__ == "Checked"


def test_a_run_whose_state_no_checkpoint_holds_starts_anew(tmp_path):
    """A checkpoint has no place for a plain number, so none is written."""
    toy, store = benchmark(PlainNumber), Store(tmp_path)
    config = configure(toy, "er", batch_size=16, memory_per_class=10, eval_size=30)
    stopped = []

    def stop(progress) -> None:
        stopped.append(progress)
        if len(stopped) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_store(config, store, None, stop, checkpoint_every=0)
    folder = run_in_store(config, store, None, checkpoint_every=0).folder
    assert_same(
        {name: np.asarray(column) for name, column in Run.load(folder).columns.items()},
        curves(PlainNumber),
    )
