"""Fast predictions are those of the network itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.networks import Branching, after_training
from helpers.training import trained
from torch import nn
from torch.nn.utils import parametrizations

from twofold import Benchmark, configure
from twofold.evaluation import predictors
from twofold.evaluation.predictors import Checked, Plain, exact, rounded
from twofold.models import FlatModel, View, mlp, reduced_resnet18


def identity(logits: torch.Tensor) -> torch.Tensor:
    return logits


class Fixed:
    """A stand-in for a quick copy: logits that were computed before, one row per image."""

    def __init__(self, logits: list[list[float]]) -> None:
        self.logits, self.net = torch.tensor(logits), View(nn.Identity())

    def follow(self) -> None: ...

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits[x[:, 0].long()]


class Asked:
    """A predictor that says class 9, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.images: list[list[int]] = []

    def __call__(self, x, scores, tasks=None) -> torch.Tensor:
        self.images.append(x[:, 0].int().tolist())
        return torch.full((len(x),), 9)


def test_only_close_images_are_looked_at_again():
    logits = [[1.0, 0.0], [1.0, 0.995], [-10.0, 0.05], [3.0, 2.9], [float("nan"), 1.0], [0.0, 0.0]]
    sure = Asked()
    checked = Checked(Fixed(logits), sure, chunk=2, margin=0.01)
    predicted = checked(torch.arange(6.0).view(6, 1), identity)
    assert sure.images == [[1, 4, 5]]  # 0.005 of 1; not a number; a tie
    assert predicted.tolist() == [0, 9, 1, 0, 9, 9]


def test_closeness_is_that_of_the_logits_that_are_scores():
    """A correction such as BiC's can bring two logits together."""
    sure = Asked()
    checked = Checked(Fixed([[1.0, 0.0], [0.0, 5.0]]), sure, chunk=9, margin=0.01)
    checked(torch.arange(2.0).view(2, 1), lambda logits: logits + torch.tensor([0.0, 1.0]))
    assert sure.images == [[0]]


def test_with_task_ids_only_the_own_classes_count():
    """Closeness is relative to all logits, whose errors are alike."""
    logits = [[9.0, 1.0, 0.0, 9.0], [5.0, 1.0, 0.02, 0.0], [0.5, 0.0, 3.0, 9.0]]
    quick, sure = Fixed(logits), Asked()
    quick.net.own = torch.tensor([[True, True, False, False], [False, True, True, False]])
    checked = Checked(quick, sure, chunk=2, margin=0.2)
    predicted = checked(torch.arange(3.0).view(3, 1), identity, torch.tensor([0, 1, 1]))
    assert sure.images == [[1]]  # 0.98 of 5
    assert predicted.tolist() == [0, 9, 2]


def test_without_close_images_nobody_is_asked():
    sure = Asked()
    Checked(Fixed([[1.0, 0.0]]), sure, chunk=9, margin=0.01)(torch.zeros(3, 1), identity)
    Checked(Fixed([[1.0]]), sure, chunk=9, margin=0.01)(torch.zeros(3, 1), identity)  # one class
    assert sure.images == []


def test_exact_predictions_are_those_of_the_naive_pass():
    """Whatever rounding does, also where it would decide."""
    torch.manual_seed(0)
    net = after_training(reduced_resnet18())
    with torch.no_grad():  # every output has a twin that differs by a rounding error
        weight, bias = net.module.linear.weight, net.module.linear.bias
        weight[1::2] = weight[::2] + 1e-8 * torch.randn_like(weight[::2])
        bias[1::2] = bias[::2]
    x = torch.randn(120, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    predictor = exact(net, x[:2])
    assert isinstance(predictor, Checked)
    naive = Plain(net, predictor.chunk)(x, identity)
    folded = Checked(predictor.quick, Asked(), predictor.chunk, margin=-1)(x, identity)
    assert not torch.equal(folded, naive), "the test would show nothing"
    assert torch.equal(predictor(x, identity), naive)


def test_a_network_that_was_misread_is_taken_as_it_is(monkeypatch):
    net, x = after_training(reduced_resnet18()), torch.randn(2, 3, 32, 32)
    assert isinstance(exact(net, x), Checked)
    monkeypatch.setattr(predictors.Inference, "__call__", lambda self, x: self._module(x) + 0.01)
    assert isinstance(exact(net, x), Plain)


class Unread(nn.Module):
    """Folded wrong: the convolution's weight is worked out anew in every call, or is another's."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.first, self.conv = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.norm, self.linear = nn.BatchNorm2d(3), nn.Linear(3, 5)
        if tied:
            self.conv.weight = self.first.weight
        else:
            parametrizations.weight_norm(self.conv)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.relu(self.norm(self.conv(self.first(x)))).mean((2, 3)))


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "parametrized"])
def test_a_misread_network_is_found_before_it_is_trained(tied):
    """At the start every batch norm is nearly the identity, and a copy without it seems right."""
    torch.manual_seed(0)
    net, x = FlatModel(Unread(tied)), torch.randn(2, 3, 8, 8)
    state = {name: tensor.clone() for name, tensor in net.module.state_dict().items()}
    predictor = exact(net, x)
    assert isinstance(predictor, Plain)
    assert rounded(net, x, predictor) is None
    for name, tensor in net.module.state_dict().items():
        assert torch.equal(tensor, state[name]), name


def test_looking_at_a_network_draws_no_random_numbers():
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(144, 5)
    net, x = FlatModel(nn.Sequential(*layers)), torch.randn(2, 3, 8, 8)
    before = torch.get_rng_state()
    assert isinstance(rounded(net, x, exact(net, x)), Checked)
    assert torch.equal(torch.get_rng_state(), before)
    assert net.module.training


@pytest.mark.parametrize("make", [mlp, reduced_resnet18], ids=lambda m: m.__name__)
def test_our_networks_are_read_right(make):
    torch.manual_seed(0)
    net, x = FlatModel(make()), torch.randn(2, *((784,) if make is mlp else (3, 32, 32)))
    predictor = exact(net, x)
    assert isinstance(predictor, Plain if make is mlp else Checked)  # there is nothing to fold
    assert isinstance(rounded(net, x, predictor), Checked)


class Tall(nn.Module):
    """A sum that can't be made in place: it is larger than its first part."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 32), nn.BatchNorm2d(4)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear((self.norm(self.conv(x)) + torch.ones(1, 1, 2, 1)).flatten(1))


@pytest.mark.parametrize("make", [Tall, Branching], ids=lambda m: m.__name__)
def test_any_network_is_predicted_right(make):
    net, x = after_training(make()), torch.randn(20, 3, 32, 32)
    predicted = exact(net, x[:2])(x, identity)
    with net.evaluating():
        assert torch.equal(predicted, net(x).argmax(1))


def test_chunks_fit_the_cache():
    resnet, images = FlatModel(reduced_resnet18()), torch.zeros(2, 3, 32, 32)
    assert exact(resnet, images).chunk == 50
    assert rounded(resnet, images, exact(resnet, images)).chunk == 100
    assert exact(FlatModel(reduced_resnet18(size=84)), torch.zeros(2, 3, 84, 84)).chunk == 7


@pytest.mark.parametrize(
    ("make", "shape"), [(mlp, (1, 28, 28)), (reduced_resnet18, (3, 32, 32))], ids=["mlp", "resnet"]
)
def test_no_curve_depends_on_the_chunk(make, shape, monkeypatch):
    torch.manual_seed(0)
    x, y = torch.randn(120, *shape), torch.arange(120) % 10
    x += torch.randn(10, *shape)[y]
    tasks = [(x[:60], y[:60], x[60:], y[60:]), (-x[:60], y[:60], -x[60:], y[60:])]
    curves, sizes = [], (1, 7, 25, 50, 1000)
    for size in sizes:
        monkeypatch.setattr(predictors, "chunk_size", lambda *_, size=size: size)
        benchmark = Benchmark.from_tensors("noisy", tasks, model=lambda: make(10))
        training, result = trained("er", benchmark=benchmark, iterations=4)
        assert training.evaluator._exact.chunk == size
        curves.append({name: values.tolist() for name, values in result.curves.items()})
    assert max(max(curves[0][f"accuracy_{k}"]) for k in (1, 2)) > 15  # it has learned something
    for size, curve in zip(sizes, curves, strict=True):
        np.testing.assert_equal(curve, curves[0], err_msg=f"chunks of {size}")


@pytest.mark.parametrize("precision", ["fp16", "", "BF16"])
def test_another_precision_is_refused(precision):
    with pytest.raises(ValueError, match="eval precision"):
        configure("rotated-mnist", "er", eval_precision=precision)
