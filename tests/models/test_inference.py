"""The network as it is evaluated: folded, and in bf16."""

import copy

import pytest
import torch
from helpers.networks import Branching, after_training
from helpers.precision import needs_bf16
from torch import nn
from torch.nn import functional as F

from twofold.models import FlatModel, mlp, reduced_resnet18
from twofold.models.inference import Inference


class Shared(nn.Module):
    """A convolution whose output is read twice, one with a bias, a norm after no convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.a = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3, padding=1)
        self.norm_a, self.b = nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1)
        self.norm_b, self.plain = nn.BatchNorm2d(4), nn.BatchNorm2d(4, affine=False)
        self.linear = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(self.first(x))
        out = torch.relu(self.norm_a(a)) + a
        b = self.norm_b(self.b(out))
        out = F.relu(b + out)
        return self.linear(self.plain(out).mean((2, 3)))


class Reused(nn.Module):
    """Modules that are called more than once, each time with another neighbour.

    calls: "norms" has two batch norms after one convolution, "bare" one of two calls without,
        "norm" one batch norm after two convolutions.
    """

    def __init__(self, calls: str) -> None:
        super().__init__()
        self.calls, self.linear = calls, nn.Linear(3, 5)
        self.a, self.b = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1)
        self.norm_a, self.norm_b = nn.BatchNorm2d(3), nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.norm_a(self.a(x)))
        if self.calls == "norms":
            out = F.relu(self.norm_b(self.a(out)))
        elif self.calls == "bare":
            out = out + torch.tanh(self.a(x))
        else:
            out = F.relu(self.norm_a(self.b(out)))
        return self.linear(out.mean((2, 3)))


class Keyword(nn.Module):
    """Hands over inputs by name: to the layer that is named."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self.layer, self.linear = layer, nn.Linear(4, 5)
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.conv(x)
        out = self.norm(input=out) if self.layer == "norm" else self.norm(out)
        out = torch.relu(input=out) if self.layer == "relu" else torch.relu(out)
        out = out.mean((2, 3))
        return self.linear(input=out) if self.layer == "linear" else self.linear(out)


def logits(net: FlatModel, x: torch.Tensor) -> torch.Tensor:
    with net.evaluating():
        return net(x)


@pytest.mark.parametrize("make", [reduced_resnet18, Shared, Branching], ids=lambda m: m.__name__)
def test_it_computes_what_the_network_does(make):
    net, x = after_training(make()), torch.randn(10, 3, 32, 32)
    inference = Inference(net)
    inference.follow()
    torch.testing.assert_close(inference(x), logits(net, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("calls", ["norms", "bare", "norm"])
def test_what_is_called_twice_is_not_folded(calls):
    net, x = after_training(Reused(calls)), torch.randn(10, 3, 32, 32)
    inference = Inference(net)
    inference.follow()
    assert inference._folds == []
    torch.testing.assert_close(inference(x), logits(net, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, pytest.param(torch.bfloat16, marks=needs_bf16)],
    ids=["fp32", "bf16"],
)
@pytest.mark.parametrize("layer", ["norm", "relu", "linear"])
def test_inputs_can_be_handed_over_by_name(layer, dtype):
    net, x = after_training(Keyword(layer)), torch.randn(10, 3, 32, 32)
    inference = Inference(net, dtype)
    inference.follow()
    largest = logits(net, x).abs().max()
    within = (1e-5 if dtype == torch.float32 else 0.05) * largest
    torch.testing.assert_close(inference(x), logits(net, x), rtol=0, atol=within)


def test_it_follows_the_weights_and_the_statistics():
    net, x = after_training(reduced_resnet18()), torch.randn(10, 3, 32, 32)
    inference = Inference(net)
    inference.follow()
    before = inference(x)
    net.values.mul_(1.1)
    net(torch.randn(8, 3, 32, 32) * 5)
    torch.testing.assert_close(inference(x), before)
    inference.follow()
    assert not torch.allclose(inference(x), before, rtol=1e-2)
    torch.testing.assert_close(inference(x), logits(net, x), rtol=1e-4, atol=1e-5)


@needs_bf16
def test_the_network_itself_is_left_alone():
    net = after_training(reduced_resnet18())
    before = copy.deepcopy(net.module.state_dict())
    inference = Inference(net, torch.bfloat16)
    inference.follow()
    inference(torch.randn(2, 3, 32, 32))
    for name, value in net.module.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert net.module.training


def test_all_twenty_batch_norms_are_gone_and_nothing_that_must_stay():
    def count(module: nn.Module) -> int:
        return sum(isinstance(m, nn.BatchNorm2d) for m in module.modules())

    assert count(Inference(after_training(reduced_resnet18()))._module) == 0
    # norm_a's convolution is read twice, `first` follows none, `plain` has no scale.
    assert count(Inference(after_training(Shared()))._module) == 3


class Repeated(nn.Module):
    """Its last layer is used before."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3072, 3072)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.relu(self.linear(x.flatten(1))))


@needs_bf16
@pytest.mark.parametrize("make", [reduced_resnet18, Branching, Repeated], ids=lambda m: m.__name__)
def test_bf16_is_near(make):
    net, x = after_training(make()), torch.randn(50, 3, 32, 32)
    inference = Inference(net, torch.bfloat16)
    inference.follow()
    quick, exact = inference(x), logits(net, x)
    assert quick.dtype == torch.float32
    assert 0 < (quick - exact).abs().max() < 0.05 * exact.abs().max()


@needs_bf16
def test_the_last_layer_is_not_rounded():
    """In bf16, logits of one size are multiples of 1/256 of it; these are not."""
    torch.manual_seed(0)
    net = FlatModel(mlp())
    inference = Inference(net, torch.bfloat16)
    inference.follow()
    quick = inference(torch.randn(100, 784))
    assert not torch.equal(quick, quick.bfloat16().float())


def test_the_small_number_in_the_root_counts():
    """eps matters where a channel hardly varies."""
    net, x = after_training(Shared()), torch.randn(10, 3, 32, 32)
    for norm in net.batch_norms:
        norm.running_var.fill_(norm.eps)
    inference = Inference(net)
    inference.follow()
    expected = logits(net, x)
    torch.testing.assert_close(inference(x), expected, rtol=1e-3, atol=1e-3 * expected.abs().max())
