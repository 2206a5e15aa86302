"""The closure of `optimizer.step(closure)`, for routines that need the loss itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from twofold.errors import UserError
from twofold.models.borrowed import BorrowedModel


class Closure:
    """A user's closure, called once before the step; and once more for gradients elsewhere."""

    def __init__(self, closure: Callable[[], Any], net: BorrowedModel) -> None:
        self._closure, self._net = closure, net
        self._random = torch.get_rng_state()
        with torch.enable_grad():
            self.returned = closure()
        loss = self.returned
        self.loss = loss.detach() if isinstance(loss, Tensor) else torch.tensor(float(loss))

    def answer(self) -> Any:
        """Return what the closure has returned, for the optimiser's own call."""
        return self.returned

    def gradient_at(self, values: Tensor) -> Tensor:
        """Return the gradient at other weights, with the same random draws on the CPU.

        Neither gradients nor batch-norm statistics keep a trace of it.
        """
        net = self._net
        gradients = [p.grad for p in net.parameters]
        for p in net.parameters:
            p.grad = None
        try:
            with net.using(values, net.buffers()), torch.random.fork_rng([]), torch.enable_grad():
                torch.set_rng_state(self._random)
                self._closure()
            if all(p.grad is None for p in net.parameters):
                raise no_gradients()
            return net.gathered([p.grad for p in net.parameters])
        finally:
            for p, gradient in zip(net.parameters, gradients, strict=True):
                p.grad = gradient


def no_gradients() -> UserError:
    """Return the error for a closure that computes a loss, and no gradients."""
    return UserError("the closure has left no gradients: let it call loss.backward()")


class NoLosses(dict[str, Tensor]):
    """No losses: only a closure tells them."""

    def __missing__(self, name: str) -> Tensor:
        raise UserError(
            "this chain needs the loss itself: call optimizer.step(closure), with a closure that "
            "returns the loss"
        )
