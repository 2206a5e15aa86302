"""The network for Rotated MNIST: two hidden layers of 400 ReLUs (section 5.1)."""

from __future__ import annotations

from torch import nn


def mlp(outputs: int = 10, inputs: int = 784, hidden: int = 400) -> nn.Module:
    """Return an MLP, by default 784-400-400-10 with 478,410 parameters."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )
