"""The activations of hidden layers in a forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from twofold.models.flat import FlatModel

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@contextmanager
def activations(net: FlatModel, wanted: bool = True) -> Iterator[list[Tensor]]:
    """Collect the inputs of linear and convolutional layers that depend on the weights.

    These are the outputs of the activation functions before them. What two layers share counts
    once, and the network's own input does not count. Unless they are wanted, nothing is collected.
    """
    found: list[Tensor] = []

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        if inputs[0].requires_grad and not any(known is inputs[0] for known in found):
            found.append(inputs[0])

    handles = [
        module.register_forward_pre_hook(note)
        for module in net.module.modules()
        if wanted and isinstance(module, LAYERS)
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
