"""Layers as products of inputs and weights, against what the layers themselves return."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from twofold.models import FlatModel
from twofold.models.layers import layers, unknown_parameters

CONVOLUTIONS = {
    "numbers": lambda: nn.Conv2d(3, 4, (3, 2), padding=(1, 0), stride=2),
    "valid": lambda: nn.Conv2d(3, 4, 3, padding="valid", dilation=2),
    "same": lambda: nn.Conv2d(3, 4, 3, padding="same", bias=False),
    "same, of an even size": lambda: nn.Conv2d(3, 4, (2, 4), padding="same", dilation=(2, 1)),
    "circular": lambda: nn.Conv2d(3, 4, 3, padding=1, stride=2, padding_mode="circular"),
    "reflect": lambda: nn.Conv2d(3, 4, 3, padding=(2, 1), padding_mode="reflect"),
    "replicate, same": lambda: nn.Conv2d(3, 4, 4, padding="same", padding_mode="replicate"),
}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even")
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_the_patches_times_the_weights_are_the_outputs_of_a_convolution(kind):
    torch.manual_seed(0)
    net, x = FlatModel(CONVOLUTIONS[kind]()), torch.randn(5, 3, 7, 6)
    (layer,) = layers(net, "hold")
    outputs = net.module(x).detach().permute(0, 2, 3, 1).flatten(0, 2)
    weights = layer.matrix(net.values).joined()
    torch.testing.assert_close(layer.rows(x) @ weights.T, outputs)
    assert unknown_parameters(net, [layer]) == []


def test_convolutions_with_several_groups_are_left_out():
    net = FlatModel(nn.Conv2d(4, 4, 3, groups=2))
    assert layers(net, "hold") == []
    assert unknown_parameters(net, []) == ["weight", "bias"]
