"""The features of a network: the inputs of its last linear layer."""

from __future__ import annotations

from torch import Tensor, nn

from twofold.errors import UserError
from twofold.models.flat import FlatModel


def head_of(net: FlatModel, asking: str) -> nn.Linear:
    """Return the last linear layer.

    asking: the name of the component that asks, for the error message.
    """
    linear = [module for module in net.module.modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise UserError(f"{asking} needs a network that ends in a linear layer")
    return linear[-1]


def features(net: FlatModel, x: Tensor, head: nn.Linear, tasks: Tensor | None = None) -> Tensor:
    """Return the features of inputs in evaluation mode, a row each."""
    found: list[Tensor] = []
    handle = head.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0].flatten(1)))
    try:
        with net.evaluating():
            net(x, tasks)
        if not found or len(found[-1]) != len(x):
            raise UserError(
                "features are the inputs of the network's last linear layer, which must be called "
                "once with all examples, as a network with a head per task does not"
            )
        return found[-1]
    finally:
        handle.remove()
