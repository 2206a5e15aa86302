"""The reduced ResNet-18, written out again with functions."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from twofold.models import reduced_resnet18


def batch(n: int = 6, size: int = 8) -> torch.Tensor:
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("size", [32, 84])
def test_resnet_is_that_of_lopez_paz_and_ranzato(size):
    """Written out again with functions, weights taken in their order, batch norm in eval mode."""
    torch.manual_seed(0)
    module = reduced_resnet18(7, size=size)
    x = batch(4, size)
    module(x)  # so that running statistics are not the initial ones
    module.eval()
    convs = iter([m for m in module.modules() if isinstance(m, nn.Conv2d)])
    norms = iter([m for m in module.modules() if isinstance(m, nn.BatchNorm2d)])

    def conv_norm(h: torch.Tensor, stride: int, pad: int, channels: int) -> torch.Tensor:
        conv, norm = next(convs), next(norms)
        assert conv.weight.shape == (channels, h.shape[1], 1 + 2 * pad, 1 + 2 * pad)
        assert conv.bias is None
        h = F.conv2d(h, conv.weight, stride=stride, padding=pad)
        return F.batch_norm(h, norm.running_mean, norm.running_var, norm.weight, norm.bias)

    h = conv_norm(x, 1, 1, 20).relu()
    for channels, stride in [
        (20, 1),
        (20, 1),
        (40, 2),
        (40, 1),
        (80, 2),
        (80, 1),
        (160, 2),
        (160, 1),
    ]:
        out = conv_norm(conv_norm(h, stride, 1, channels).relu(), 1, 1, channels)
        shortcut = h if h.shape == out.shape else conv_norm(h, stride, 0, channels)
        h = (out + shortcut).relu()
    assert next(convs, None) is None
    features = F.avg_pool2d(h, 4).flatten(1)
    assert features.shape[1] == {32: 160, 84: 640}[size]
    expected = features @ module.linear.weight.T + module.linear.bias
    torch.testing.assert_close(module(x), expected)


def out_of_place(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The reduced ResNet-18 as it is drawn, without a change of any tensor."""
    x = F.relu(net.bn1(net.conv1(x)))
    for block in net.blocks:
        out = F.relu(block.bn1(block.conv1(x)))
        x = F.relu(block.bn2(block.conv2(out)) + block.shortcut(x))
    return net.linear(F.avg_pool2d(x, 4).flatten(1))


def test_working_in_place_changes_no_bit():
    torch.manual_seed(0)
    first = reduced_resnet18(7)
    second = copy.deepcopy(first)
    x = torch.randn(6, 3, 32, 32)
    for net, logits in ((first, first(x)), (second, out_of_place(second, x))):
        logits.square().sum().backward()
        net.logits = logits.detach()
    assert torch.equal(first.logits, second.logits)
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)
    for a, b in zip(first.buffers(), second.buffers(), strict=True):
        assert torch.equal(a, b)
