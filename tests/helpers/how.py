"""A small network with `How`, its batches and its loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from twofold import How


def tiny(chain: str, make=torch.optim.SGD, model: nn.Module | None = None, **options):
    """A network of two layers, its optimiser, and its routines, in a second task."""
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    how = {key: options.pop(key) for key in ("route", "seed", "iterations") if key in options}
    optimizer = make(model.parameters(), **{"lr": 0.1, **options})
    return model, optimizer, How(chain, optimizer, model, **how)


def batch(seed: int, count: int = 6) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, generator=random), torch.arange(count) % 2


def loss_of(model: nn.Module, seed: int, count: int = 6) -> Tensor:
    x, y = batch(seed, count)
    return F.cross_entropy(model(x), y)
