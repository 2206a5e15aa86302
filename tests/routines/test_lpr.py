"""Layerwise proximal replay against dense linear algebra on one layer at a time."""

from __future__ import annotations

import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from torch import nn

import twofold
from twofold.benchmarks import Batch
from twofold.errors import UserError
from twofold.method import Method
from twofold.models import FlatModel, mlp, reduced_resnet18
from twofold.models.layers import layers
from twofold.routines.base import Step
from twofold.routines.lpr import Lpr
from twofold.settings import Settings
from twofold.training import Training

OMEGA = 0.7


def preconditioned(net: FlatModel, x: torch.Tensor, g: torch.Tensor, **options) -> torch.Tensor:
    routine = Lpr(omega=OMEGA, **options)
    routine.start(net)

    def memory(count: int) -> Batch:
        return Batch(x[:count], torch.zeros(len(x[:count]), dtype=torch.long), torch.arange(count))

    return routine.direct(g, Step(2, 1, net, g, memory=memory))


def per_parameter(net: FlatModel, vector: torch.Tensor) -> dict[str, torch.Tensor]:
    """The vector as gradients in the parameters' own shapes, by name."""
    kept = net.gradient.clone()
    net.gradient.copy_(vector)
    named = {name: p.grad.clone() for name, p in net.module.named_parameters()}
    net.gradient.copy_(kept)
    return named


def inverse(Z: torch.Tensor) -> torch.Tensor:
    """(I + omega Z'Z / n)^-1, in double precision."""
    Z = Z.double()
    return torch.linalg.inv(torch.eye(Z.shape[1], dtype=Z.dtype) + OMEGA * Z.T @ Z / len(Z))


def with_ones(Z: torch.Tensor) -> torch.Tensor:
    return torch.cat([Z, torch.ones(len(Z), 1)], 1)


@pytest.mark.parametrize("images", [3, 4, 20])  # fewer than inputs, as many, more
def test_a_linear_layer_by_the_formula(images):
    torch.manual_seed(0)
    net = FlatModel(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3, bias=False)))
    x, g = torch.randn(images, 6), torch.randn(len(net.values))
    before, after = per_parameter(net, g), per_parameter(net, preconditioned(net, x, g))
    G = torch.cat([before["0.weight"], before["0.bias"][:, None]], 1).double()
    expected = G @ inverse(with_ones(x))
    torch.testing.assert_close(after["0.weight"].double(), expected[:, :-1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(after["0.bias"].double(), expected[:, -1], rtol=1e-4, atol=1e-6)
    hidden = net.module[:2](x).detach()
    expected = before["2.weight"].double() @ inverse(hidden)
    torch.testing.assert_close(after["2.weight"].double(), expected, rtol=1e-4, atol=1e-6)


def patches(x: torch.Tensor, k: int, padding: int, stride: int) -> torch.Tensor:
    """Every patch of every image as a row, by explicit loops."""
    padded = torch.zeros(*x.shape[:2], x.shape[2] + 2 * padding, x.shape[3] + 2 * padding)
    padded[:, :, padding : padding + x.shape[2], padding : padding + x.shape[3]] = x
    places = range(0, padded.shape[2] - k + 1, stride)
    return torch.stack(
        [
            image[:, i : i + k, j : j + k].flatten()
            for image in padded
            for i in places
            for j in places
        ]
    )


@pytest.mark.parametrize(("padding", "stride", "bias"), [(1, 1, True), (0, 2, False), (1, 2, True)])
def test_a_convolution_is_a_linear_layer_of_its_patches(padding, stride, bias):
    torch.manual_seed(1)
    net = FlatModel(nn.Conv2d(3, 5, 3, stride=stride, padding=padding, bias=bias))
    x, g = torch.randn(4, 3, 7, 7), torch.randn(len(net.values))
    before, after = per_parameter(net, g), per_parameter(net, preconditioned(net, x, g))
    Z, G = patches(x, 3, padding, stride), before["weight"].flatten(1)
    if bias:
        Z, G = with_ones(Z), torch.cat([G, before["bias"][:, None]], 1)
    expected = G.double() @ inverse(Z)
    weight = expected[:, :-1] if bias else expected
    torch.testing.assert_close(after["weight"].flatten(1).double(), weight, rtol=1e-4, atol=1e-6)
    if bias:
        torch.testing.assert_close(after["bias"].double(), expected[:, -1], rtol=1e-4, atol=1e-6)


def test_batch_norm_has_two_parameters_a_channel():
    torch.manual_seed(2)
    net = FlatModel(nn.Sequential(nn.BatchNorm2d(3)))
    (norm,) = net.batch_norms
    norm.running_mean.copy_(torch.tensor([0.5, -1.0, 2.0]))
    norm.running_var.copy_(torch.tensor([4.0, 0.25, 1.0]))
    x, g = 3 * torch.randn(6, 3, 5, 5) + 1, torch.randn(6)
    statistics = [b.clone() for b in net.buffers()]
    after = preconditioned(net, x, g)
    assert all(torch.equal(a, b) for a, b in zip(statistics, net.buffers(), strict=True))
    for c in range(3):
        normalised = (x[:, c].flatten() - norm.running_mean[c]) / (
            norm.running_var[c] + 1e-5
        ).sqrt()
        expected = torch.stack([g[c], g[3 + c]]).double() @ inverse(with_ones(normalised[:, None]))
        actual = torch.stack([after[c], after[3 + c]]).double()
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("inputs", [4, 70, 200])  # the chunks are summed, in part, or kept
def test_more_images_than_a_chunk_count_alike(inputs):
    torch.manual_seed(3)
    net = FlatModel(nn.Linear(inputs, 2))
    x, g = torch.randn(130, inputs), torch.randn(len(net.values))
    before = per_parameter(net, g)
    G = torch.cat([before["weight"], before["bias"][:, None]], 1).double()
    after = per_parameter(net, preconditioned(net, x, g, examples=125))
    expected = G @ inverse(with_ones(x[:125]))
    torch.testing.assert_close(after["weight"].double(), expected[:, :-1], rtol=1e-4, atol=1e-6)


def test_it_is_the_proximal_step():
    """W - W_l = -G P^-1 minimises <G, D> + |D|^2/2 + omega/2n |Z D'|^2: its gradient is zero."""
    torch.manual_seed(4)
    net = FlatModel(nn.Linear(5, 3, bias=False))
    x, g = torch.randn(12, 5), torch.randn(15)
    D = -preconditioned(net, x, g).view(3, 5).clone().requires_grad_()
    change = OMEGA / (2 * len(x)) * (x @ D.T).square().sum()
    objective = (g.view(3, 5) * D).sum() + D.square().sum() / 2 + change
    (slope,) = torch.autograd.grad(objective, D)
    torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", [lambda: mlp(10), lambda: reduced_resnet18(10)])
def test_every_parameter_of_the_papers_networks_has_a_layer(make):
    net = FlatModel(make())
    covered = torch.zeros(len(net.values), dtype=torch.int)
    for layer in layers(net, "lpr"):
        covered[layer.weight] += 1
        if layer.bias is not None:
            covered[layer.bias] += 1
    assert (covered == 1).all()


def test_it_only_shortens_and_still_descends():
    """P^-1 has eigenvalues in 0..1: <g, gbar> > 0 and ||gbar|| <= ||g||."""
    torch.manual_seed(5)
    net = FlatModel(reduced_resnet18(10))
    g = torch.randn(len(net.values))
    after = preconditioned(net, torch.randn(20, 3, 32, 32), g)
    assert 0 < torch.dot(g, after) < torch.dot(g, g)
    assert after.norm() < g.norm()


def counting(every: int) -> list[tuple[int, int]]:
    renewed = []

    class Watching(Lpr):
        def direct(self, g, step):
            return super().direct(g, watched(step))

        def direct_products(self, products, step):
            return super().direct_products(products, watched(step))

    def watched(step: Step) -> Step:
        draw = step.memory
        if draw is not None:
            step.memory = lambda n: (renewed.append((step.task, step.iteration)), draw(n))[1]
        return step

    objective, _ = Method.parse("er").make()
    settings = Settings(lr=0.02, batch_size=8, seed=0, iterations=7)
    Training(class_benchmark(), objective, [Watching(every=every)], settings).run()
    return renewed


def test_it_is_renewed_at_a_switch_and_at_intervals():
    assert counting(3) == [(2, 1), (2, 4), (2, 7), (3, 1), (3, 4), (3, 7)]
    assert counting(100) == [(2, 1), (3, 1)]
    assert len(counting(1)) == 14


def test_old_outputs_change_less():
    """What it is for: a step on a new task moves the outputs on old data less."""
    moved = {}
    for method in ("finetune", "finetune+lpr(omega=10)"):
        objective, routines = Method.parse(method).make()
        benchmark, outputs = domain_benchmark(), []
        old = benchmark.train.batch(benchmark.tasks[0].train).x
        settings = Settings(lr=0.02, batch_size=8, seed=0, iterations=12, tasks=2, momentum=0.0)
        training = Training(benchmark, objective, routines, settings)

        def keep(training=training, old=old, outputs=outputs) -> None:
            with training.net.evaluating():
                outputs.append(training.net(old).clone())

        training.run(keep)
        before, after = outputs[11:13]  # around the first step of task 2
        moved[method] = float((after - before).norm())
    assert moved["finetune+lpr(omega=10)"] < 0.5 * moved["finetune"]


@pytest.mark.parametrize("method", ["er+lpr", "lpr", "er+gem+lpr", "er+lpr+gem+clip", "joint+lpr"])
def test_it_chains(method):
    run = twofold.run(class_benchmark(), method, batch_size=8, iterations=4)
    assert run.columns["projected"][4:].all()
    assert not run.columns["projected"][:4].any()
    assert not run.summary["diverged"]


def test_a_network_that_diverges_is_no_reason_to_stop():
    net = FlatModel(nn.Linear(3, 2))
    g = torch.ones(len(net.values))
    for images in (2, 5):
        x = torch.full((images, 3), float("nan"))
        assert torch.equal(preconditioned(net, x, g), g)


@pytest.mark.parametrize("examples", [1, 2, 51])
def test_batch_norm_of_vectors_by_the_formula(examples):
    """One example is fewer than the two parameters of a channel."""
    torch.manual_seed(6)
    net = FlatModel(nn.Sequential(nn.BatchNorm1d(3)))
    x, g = torch.randn(examples, 3), torch.randn(6)
    after = preconditioned(net, x, g, examples=examples)
    for c in range(3):
        Z = with_ones(x[:, c : c + 1] / (1 + 1e-5) ** 0.5)
        expected = torch.stack([g[c], g[3 + c]]).double() @ inverse(Z)
        actual = torch.stack([after[c], after[3 + c]]).double()
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lambda: nn.BatchNorm1d(16, track_running_stats=False), "batch norm '1' .*statistics"),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(16, 16)), "layer '1'.*weight"),
        (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16)), "layer '1'.*weight"),
    ],
)
def test_layers_without_a_preconditioner_are_refused_at_the_start(layer, message):
    x, y = torch.zeros(20, 8), torch.arange(20) % 3
    benchmark = twofold.Benchmark.from_tensors(
        "mine",
        [(x, y, x, y)] * 2,
        model=lambda: nn.Sequential(nn.Linear(8, 16), layer(), nn.Linear(16, 3)),
    )
    with pytest.raises(UserError, match=f"lpr.*{message}"):
        twofold.run(benchmark, "er+lpr", batch_size=8, iterations=2)


@pytest.mark.parametrize("options", [{"omega": 0.0}, {"every": 0}, {"examples": 0}])
def test_options_out_of_range_are_refused(options):
    (name,) = options
    with pytest.raises(UserError, match=f"lpr's {name} must be above 0"):
        Lpr(**options)
