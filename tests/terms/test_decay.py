"""Neuronal decay: a plain network with its activations in sight, trained by torch alone."""

from __future__ import annotations

import pytest
import torch
from helpers.terms import Outputs, is_a_plain_loop
from torch import nn

from twofold.errors import UserError
from twofold.method import Method
from twofold.models import FlatModel
from twofold.models.activations import activations
from twofold.models.resnet import reduced_resnet18


def penalty(model: nn.Sequential, x: torch.Tensor, seen: Outputs, task: int) -> torch.Tensor:
    """Sum the squares after the ReLU of the toy network, which feeds its last layer."""
    return 0.01 * (seen.hidden**2).sum(1).mean()


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("method", ["er+decay(0.01)", "decay(0.01)"])
def test_a_run_is_a_plain_loop(method, norm):
    is_a_plain_loop(method, norm, penalty)


def test_the_activations_are_the_inputs_of_all_layers_but_the_first():
    net = FlatModel(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 6), nn.Linear(6, 2)))
    x = torch.randn(3, 4)
    with activations(net) as found:
        net(x)
    first = net.module[1](net.module[0](x))
    torch.testing.assert_close(found, [first, net.module[2](first)])
    assert not net.has_hooks


def test_a_resnet_with_shortcuts_counts_every_map_once():
    net = FlatModel(reduced_resnet18(10))
    with activations(net) as found:
        net(torch.randn(2, 3, 32, 32))
    assert len(found) == 17  # two per block, of which there are eight, and the features
    assert len({id(each) for each in found}) == 17


@pytest.mark.parametrize("text", ["decay(0)", "decay(-1)"])
def test_a_weight_that_is_none_is_refused(text):
    with pytest.raises(UserError, match=r"^decay's weight must be above 0"):
        Method.parse(text)
