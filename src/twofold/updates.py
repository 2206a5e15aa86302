"""From a direction to new parameters: step 5 of an iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from twofold.models import FlatModel
from twofold.models.flat import shaped
from twofold.optimizers import Choice
from twofold.routing import Routed

CACHED = 2**17  # numbers of a vector, in an update


class Update(Protocol):
    """Moves the parameters of a network along a direction."""

    def step(self, direction: Tensor, g: Callable[[], Tensor], lr: float, momentum: float) -> None:
        """Move the parameters; `g` returns the gradient before the routines changed it."""

    def state(self) -> dict[str, Any]:
        """Return what is kept between steps, as tensors and plain data."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with what `state` returned."""


class Momentum:
    """SGD with momentum, which averages the directions."""

    def __init__(self, net: FlatModel) -> None:
        self.velocity = torch.zeros_like(net.values)
        # On a CPU, three operations on a part that stays in the cache are faster than on the whole.
        self._size = CACHED if net.device.type == "cpu" else max(1, len(net.values))
        self._parts = list(
            zip(self.velocity.split(self._size), net.values.split(self._size), strict=True)
        )

    def step(self, direction: Tensor, g: Callable[[], Tensor], lr: float, momentum: float) -> None:
        parts = zip(self._parts, direction.split(self._size), strict=True)
        for (velocity, values), followed in parts:
            velocity.mul_(momentum).add_(followed)
            values.add_(velocity, alpha=-lr)

    def state(self) -> dict[str, Any]:
        return {"velocity": self.velocity}

    def restore(self, state: dict[str, Any]) -> None:
        self.velocity.copy_(state["velocity"])


class TorchUpdate:
    """An optimiser of torch on the network's own parameters, layer by layer as in any script."""

    def __init__(self, net: FlatModel, choice: Choice, lr: float, momentum: float) -> None:
        self._net, self._route = net, choice.route
        self._trained = [p for p in net.module.parameters() if p.requires_grad]
        self.optimizer = choice.make(self._trained, lr, momentum)

    def step(self, direction: Tensor, g: Callable[[], Tensor], lr: float, momentum: float) -> None:
        net = self._net
        routed = self._route == "first" and direction is not g()
        second = g().clone() if routed else direction  # g may be the network's own gradient vector
        if direction is not net.gradient:
            net.gradient.copy_(direction)
        gradients = [p.grad for p in self._trained]
        if routed:
            for p in self._trained:
                assert p.grad is not None
                p.grad = Routed.of(p.grad, shaped(second[net.slices[p]], p))
        changes = Changes(self.optimizer)
        changes.make(lambda _: lr, lambda _: momentum)
        self.optimizer.step()
        changes.undo()
        for p, gradient in zip(self._trained, gradients, strict=True):
            p.grad = gradient

    def state(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def restore(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)


class Changes:
    """The learning rates and momenta of one step, put into an optimiser's groups for its time."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._kept: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def make(self, step_size: Callable[[float], float], momentum: Callable[[float], float]) -> None:
        """Set what these functions return, given each group's own learning rate and momentum.

        For each group, the momentum is asked for first.
        """
        for group in self._optimizer.param_groups:
            old = momentum_of(group)
            new, lr = momentum(old), step_size(group["lr"])
            changed = {}
            if lr != group["lr"]:
                changed["lr"] = lr
            if new != old:
                changed |= self._momentum(group, new)
            if changed:
                self._kept.append((group, {name: group[name] for name in changed}))
                group.update(changed)

    def _momentum(self, group: dict[str, Any], momentum: float) -> dict[str, Any]:
        if "betas" in group:
            return {"betas": (momentum, *group["betas"][1:])}
        if momentum == 0:
            # SGD without momentum would leave the old velocity as it is, for the step after.
            for p in group["params"]:
                buffer = self._optimizer.state.get(p, {}).get("momentum_buffer")
                if buffer is not None:
                    buffer.zero_()
            return {}
        return {"momentum": momentum} if "momentum" in group else {}

    def undo(self) -> None:
        """Set the groups' own values again."""
        while self._kept:
            group, old = self._kept.pop()
            group.update(old)


def momentum_of(group: dict[str, Any]) -> float:
    """Return a group's momentum; for Adam and its relatives this is beta1."""
    if "momentum" in group:
        return float(group["momentum"])
    return float(group["betas"][0]) if "betas" in group else 0.0
