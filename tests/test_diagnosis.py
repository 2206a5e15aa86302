"""`--diagnose`: what each step does to the old loss, by plain autograd, without a trace."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import Recorder, trained, training_of
from torch import nn

from twofold import Benchmark
from twofold.diagnosis import Diagnosis
from twofold.models import FlatModel

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
    [(made, m) for made in MADE for m in METHODS if (made, m) != (dropping, "der")],
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
