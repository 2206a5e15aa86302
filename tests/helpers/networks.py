"""Networks that are hard to read, and networks as training leaves them."""

from __future__ import annotations

import torch
from torch import nn

from twofold.models import FlatModel


class Branching(nn.Module):
    """Can't be traced: what it does depends on its input."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.norm(self.conv(x)) if x.sum() > -1e9 else self.conv(x)
        return self.linear(out.mean((2, 3)))


def after_training(module: nn.Module, seed: int = 0) -> FlatModel:
    """Return a network with statistics and weights as they are after some training."""
    torch.manual_seed(seed)
    net = FlatModel(module)
    for _ in range(3):
        net(torch.randn(8, 3, 32, 32) * 2 + 1)
    for norm in net.batch_norms:
        if norm.affine:
            nn.init.normal_(norm.weight, 1, 0.3)
            nn.init.normal_(norm.bias, 0, 0.3)
    return net
