"""`--diagnose`: what each step does to the old loss, by plain autograd, without a trace."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, dense_benchmark, domain_benchmark
from helpers.training import Recorder, trained, training_of
from torch import nn

from twofold import Benchmark
from twofold.diagnosis import Diagnosis
from twofold.models import FlatModel, reduced_resnet18
from twofold.routines import Routine

COLUMNS = [
    *("old_cosine", "old_direct", "old_predicted", "old_second", "old_change", "old_curvature")
]


def dropping() -> Benchmark:
    """A benchmark whose network draws while it is trained."""
    images = torch.randn(60, 8, generator=torch.Generator().manual_seed(0))
    part = (images, torch.arange(60) % 3, images[:30], torch.arange(30) % 3)

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Dropout(), nn.Linear(6, 3))

    return Benchmark.from_tensors("dropping", [part, part], model=model, offline_iterations=12)


METHODS = ["er", "er+gem", "er+agem", "er+lpr", "er+sam", "joint", "der"]
MADE = [class_benchmark, domain_benchmark, dropping]


@pytest.mark.parametrize(
    ("made", "method"),
    # `der` augments images, and these are none.
    [(made, m) for made in MADE for m in METHODS if (made, m) != (dropping, "der")]
    + [(dense_benchmark, m) for m in ("er+lpr", "er+hold", "er+hold+fade")],
)
def test_a_diagnosed_run_is_bitwise_the_same(method, made):
    (plain, one), (diagnosed, other) = (
        trained(method, benchmark=made(), diagnose=each) for each in (False, True)
    )
    assert torch.equal(plain.net.values, diagnosed.net.values)
    statistics = ["old_statistics"] * bool(plain.net.buffers())
    assert {*other.curves} == {*one.curves, *COLUMNS, *statistics}
    for name, column in one.curves.items():
        np.testing.assert_array_equal(column, other.curves[name])


def test_there_is_nothing_to_tell_in_the_first_task():
    curves = trained("er", diagnose=True)[1].curves
    for name in COLUMNS:
        assert np.isnan(curves[name][curves["task"] == 1]).all()
        assert np.isfinite(curves[name][curves["task"] > 1]).all()


def test_the_columns_are_those_of_plain_autograd():
    recorder = Recorder()
    benchmark = domain_benchmark(tasks=2)
    training = training_of("er", recorder, benchmark=benchmark, diagnose=True)
    result = training.run()
    # All 60 images of task 1 are fewer than a diagnosis draws, so there is no chance in it.
    batch = benchmark.train.batch(benchmark.tasks[0].train)
    module = benchmark.model()

    def old(weights):
        nn.utils.vector_to_parameters(weights, module.parameters())
        loss = nn.functional.cross_entropy(module(batch.x), batch.y)
        gradients = torch.autograd.grad(loss, module.parameters())
        return loss.detach(), nn.utils.parameters_to_vector(gradients)

    first, weights = int((result.curves["task"] == 1).sum()), recorder.weights

    def plain(vector):  # convolution weights are stored channels last
        net = FlatModel(benchmark.model())
        net.values.copy_(vector)
        return torch.cat([p.detach().flatten() for p in net.module.parameters()])

    for n in range(first, len(weights) - 1):
        (loss, gradient), s = old(plain(weights[n])), plain(weights[n + 1]) - plain(weights[n])
        after, later = old(plain(weights[n + 1]))
        g = plain(recorder.directions[n])
        expected = {
            "old_cosine": torch.cosine_similarity(g, gradient, dim=0),
            "old_predicted": gradient @ s,
            "old_change": after - loss,
            "old_second": (later - gradient) @ s / 2,
            "old_curvature": (later - gradient) @ s / (s @ s),
        }
        for name, value in expected.items():
            assert result.curves[name][n] == pytest.approx(float(value), rel=2e-3, abs=1e-5), name


def test_on_a_quadratic_the_second_term_is_all_that_the_first_leaves():
    """For a linear network with a small step, change = predicted + curvature |s|^2 / 2."""
    benchmark = domain_benchmark(tasks=2)
    net = FlatModel(nn.Sequential(nn.Flatten(), nn.Linear(192, 3)))
    random = torch.Generator().manual_seed(0)
    net.values.copy_(0.05 * torch.randn(net.size, generator=random))
    diagnosis = Diagnosis(benchmark, net, seed=0)
    before = diagnosis.before(2, 1)
    s = 1e-2 * torch.randn(net.size, generator=random)
    net.values.add_(s)
    result = diagnosis.after(before)
    expected = result["old_predicted"] + result["old_curvature"] * (s @ s) / 2
    assert float(result["old_change"]) == pytest.approx(float(expected), rel=1e-2)


# A linear network, whose Hessian is known, and every step as the update rule gives it.

LR, MOMENTUM = 0.05, 0.9


class Uneven(Routine):
    """A preconditioned direction: g with a different factor per parameter."""

    def direct(self, g, step):
        return g * torch.linspace(0.2, 1.8, len(g))


def linear_benchmark() -> Benchmark:
    random = torch.Generator().manual_seed(0)
    images = torch.randn(2, 60, 5, generator=random)
    parts = [(x, (x[:, :3] + 2 * k * x[:, 2:]).argmax(1), x[:9], torch.arange(9) % 3)
             for k, x in enumerate(images)]  # fmt: skip
    return Benchmark.from_tensors("linear", parts, model=lambda: nn.Linear(5, 3))


def hessian(W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The Hessian of the mean cross-entropy of softmax(XW'): the mean of (diag p - pp') x xx'.

    X has a last column of ones; parameters are the rows of W, one after the other.
    """
    logits = X @ W.T
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    size = W.size
    H = np.zeros((size, size))
    for x, each in zip(X, p, strict=True):
        H += np.kron(np.diag(each) - np.outer(each, each), np.outer(x, x)) / len(X)
    return H


def slope(W: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    logits = X @ W.T
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return ((p - np.eye(3)[y]).T @ X / len(X)).ravel()


def joined(vector: torch.Tensor) -> np.ndarray:
    """The weights and biases of the network's vector as one matrix, with biases last."""
    numbers = vector.double().numpy()
    return np.concatenate([numbers[:15].reshape(3, 5), numbers[15:].reshape(3, 1)], 1)


@pytest.mark.parametrize("routine", [None, "hold", "preconditioned"])
@pytest.mark.parametrize("momentum", [0.0, MOMENTUM])
def test_every_term_is_that_of_the_update_rule_and_a_closed_hessian(momentum, routine):
    recorder, benchmark = Recorder(), linear_benchmark()
    more = [Uneven()] * (routine == "preconditioned")
    training = training_of(
        "er+hold" if routine == "hold" else "er",
        *more,
        recorder,
        benchmark=benchmark,
        diagnose=True,
        lr=LR,
        momentum=momentum,
    )
    curves = training.run().curves
    old = benchmark.train.batch(benchmark.tasks[0].train)  # fewer than a diagnosis draws
    X = np.concatenate([old.x.double().numpy(), np.ones((60, 1))], 1)
    first = int((curves["task"] == 1).sum())
    velocity = np.zeros(18)
    for n, d in enumerate(map(joined, recorder.directions)):
        velocity = momentum * velocity + d.ravel()
        if n < first:
            continue
        W = joined(recorder.weights[n])
        g, s = slope(W, X, old.y.numpy()), -LR * velocity
        assert curves["old_direct"][n] == pytest.approx(-LR * g @ d.ravel(), rel=1e-3, abs=1e-6)
        assert curves["old_predicted"][n] == pytest.approx(g @ s, rel=1e-3, abs=1e-6)
        middle = hessian(W + s.reshape(W.shape) / 2, X)  # H hardly changes along a step
        assert curves["old_second"][n] == pytest.approx(s @ middle @ s / 2, rel=1e-2, abs=1e-6)
        bend = s @ middle @ s / (s @ s)
        assert curves["old_curvature"][n] == pytest.approx(bend, rel=1e-2, abs=1e-4)
        if not momentum:
            assert curves["old_direct"][n] == pytest.approx(curves["old_predicted"][n], rel=1e-3)


@pytest.mark.parametrize("method", ["er", "er+lpr", "er+hold"])
def test_the_two_terms_of_a_quadratic_are_its_whole_change(method, monkeypatch):
    """A loss of squares on old data has no third term, however long the steps are."""

    def squares(y):
        return lambda logits: (logits - nn.functional.one_hot(y, 3)).square().mean()

    monkeypatch.setattr("twofold.diagnosis.cross_entropy", squares)
    curves = trained(method, benchmark=linear_benchmark(), diagnose=True, lr=0.5)[1].curves
    later = curves["task"] > 1
    terms = curves["old_predicted"] + curves["old_second"]
    np.testing.assert_allclose(terms[later], curves["old_change"][later], rtol=1e-4, atol=1e-5)
    assert (curves["old_second"][later] > 0).all()  # squares bend upwards everywhere
    assert np.abs(curves["old_second"][later]).max() > 0.01  # and these steps are not short


def test_slope_and_curvature_are_those_of_finite_differences():
    benchmark = linear_benchmark()
    module = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    precise, net = copy.deepcopy(module).double(), FlatModel(module)
    diagnosis = Diagnosis(benchmark, net, seed=0)
    before = diagnosis.before(2, 1)
    start, h = net.values.double(), 1e-3

    def loss(weights):
        nn.utils.vector_to_parameters(weights, precise.parameters())
        with torch.no_grad():
            return float(
                nn.functional.cross_entropy(precise(before.batch.x.double()), before.batch.y)
            )

    for s in 0.1 * torch.randn(3, net.size, generator=torch.Generator().manual_seed(1)).double():
        net.values.copy_(start + s)
        after = diagnosis.after(before)
        slopes = [(loss(w + h * s) - loss(w - h * s)) / (2 * h) for w in (start, start + s)]
        assert float(after["old_predicted"]) == pytest.approx(slopes[0], rel=1e-3)
        assert float(after["old_second"]) == pytest.approx((slopes[1] - slopes[0]) / 2, rel=1e-3)
        change = loss(start + s) - loss(start)
        assert float(after["old_change"]) == pytest.approx(change, rel=1e-3)


# Batch norm: the loss is that of evaluation, and statistics that move are told apart from the step.


class Statistics(Recorder):
    """Also records batch norm's statistics after every iteration."""

    def start(self, net):
        super().start(net)
        self.buffers = [[b.clone() for b in net.buffers()]]

    def after_step(self, step):
        super().after_step(step)
        self.buffers.append([b.clone() for b in step.net.buffers()])


def small_resnet_benchmark() -> Benchmark:
    random = torch.Generator().manual_seed(0)
    images = [torch.randn(16, 3, 32, 32, generator=random) + k for k in range(2)]
    parts = [(x, torch.arange(16) % 3, x[:6], torch.arange(6) % 3) for x in images]
    return Benchmark.from_tensors("small", parts, model=lambda: reduced_resnet18(3))


@pytest.mark.parametrize(
    ("made", "method"),
    [(class_benchmark, "er"), (class_benchmark, "er+hold"), (small_resnet_benchmark, "er")],
)
def test_with_batch_norm_the_change_by_a_step_is_at_fixed_running_statistics(made, method):
    recorder, benchmark = Statistics(), made()
    training = training_of(method, recorder, benchmark=benchmark, diagnose=True, iterations=2)
    curves, net = training.run().curves, training.net
    batch = benchmark.train.batch(benchmark.tasks[0].train)

    def loss(values, buffers):
        with net.using(values, buffers), net.evaluating():
            return float(nn.functional.cross_entropy(net(batch.x), batch.y))

    weights, buffers = recorder.weights, recorder.buffers
    for n in np.flatnonzero(curves["task"] == 2):
        start, moved = loss(weights[n], buffers[n]), loss(weights[n + 1], buffers[n])
        end = loss(weights[n + 1], buffers[n + 1])
        assert curves["old_change"][n] == pytest.approx(moved - start, rel=1e-3, abs=1e-5)
        assert curves["old_statistics"][n] == pytest.approx(end - moved, rel=1e-3, abs=1e-5)
        assert abs(end - moved) > 1e-4  # so that it matters which statistics are taken
