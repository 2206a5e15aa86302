"""The multilayer perceptron."""

from __future__ import annotations

import torch

from twofold.models import mlp


def test_mlp_is_two_hidden_layers_of_relus():
    torch.manual_seed(0)
    module, x = mlp(), torch.randn(3, 1, 28, 28)
    w1, b1, w2, b2, w3, b3 = module.parameters()
    h = (x.flatten(1) @ w1.T + b1).clamp(min=0)
    h = (h @ w2.T + b2).clamp(min=0)
    torch.testing.assert_close(module(x), h @ w3.T + b3)
