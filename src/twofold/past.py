"""What routines ask of anyone's loop: losses on old data, and examples of the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from twofold.benchmarks import Batch
from twofold.errors import UserError
from twofold.models.borrowed import BorrowedModel
from twofold.options import shown

OldLoss = Callable[[], "Tensor | tuple[Tensor, float]"]


class Past:
    """Functions of a user's loop, their gradients as vectors, and what is wrong with them."""

    def __init__(self, net: BorrowedModel) -> None:
        self._net, self._matrix = net, net.vector(0)
        self.references: Callable[[int], Tensor] | None = None
        self.old: OldLoss | None = None
        self.memory: Callable[[int], Tensor] | None = None

    def reference_gradients(self, tasks: int, g: Tensor) -> Tensor:
        """Return a row per past task: the gradient of the loss on its memory.

        g: the gradient of the user's loss. If it is finite, references must be.
        """
        assert self.references is not None
        if len(self._matrix) < tasks:
            self._matrix = self._net.vector(tasks)
        for k, row in enumerate(self._matrix[:tasks]):
            name = f"references({k})"
            try:
                loss = self._loss(name, self.references, k, into=row, affine=False)[0]
            except (LookupError, _NoLossError) as error:
                # The message of a KeyError is nothing but its key.
                kind = f"{type(error).__name__}: " if isinstance(error, LookupError) else ""
                raise UserError(
                    f"{name} has no loss ({kind}{error}): does past task {k} have a memory?"
                ) from None
            _check_number(name, loss, g)
        return self._matrix[:tasks]

    def old_gradient(self, g: Tensor) -> tuple[Tensor, Tensor, float | None]:
        """Return the gradient of the loss on old data, the loss, and its weight if it is known."""
        assert self.old is not None
        gradient = self._net.vector()
        try:
            loss, weight = self._loss("old()", self.old, into=gradient, affine=True)
        except _NoLossError as error:
            raise UserError(f"old() has no loss ({error}): is the memory empty?") from None
        _check_number("old()", loss, g)
        return gradient, loss, weight

    def examples(self, count: int) -> Batch:
        """Return examples of the memory, without labels."""
        assert self.memory is not None
        inputs = self.memory(count)
        if not isinstance(inputs, Tensor) or not len(inputs):
            raise UserError(f"memory({count}) must return inputs, not {described(inputs)}")
        no_labels = inputs.new_empty(0, dtype=torch.long)  # labels and rows are the user's own
        return Batch(inputs, no_labels, no_labels)

    def _loss(
        self, name: str, function: Callable[..., Any], *args: int, into: Tensor, affine: bool
    ) -> tuple[Tensor, float | None]:
        """Write the gradient of a loss into a vector, and return the loss and its weight."""
        with torch.enable_grad(), self._net.frozen_batch_norm(affine):
            trained = [p for p in self._net.parameters if p.requires_grad]
            loss, weight = _divided(name, function(*args))
            try:
                parts = torch.autograd.grad(loss, trained, allow_unused=True)
            except RuntimeError as error:
                if "second time" not in str(error):
                    raise
                raise UserError(
                    "the graph of a loss is gone: call loss.backward(retain_graph=True), or "
                    "compute the loss in the function"
                ) from None
        if all(part is None for part in parts):
            raise UserError(
                f"{name} does not depend on the parameters of the model that How was given"
            )
        gradients = dict(zip(trained, parts, strict=True))
        self._net.gathered([gradients.get(p) for p in self._net.parameters], into)
        if weight is not None:
            into /= weight
            loss = loss / weight
        return loss.detach(), weight


class _NoLossError(Exception):
    """A function has returned no loss."""


def _divided(name: str, returned: Any) -> tuple[Tensor, float | None]:
    """Return a loss and its weight, if there is one, checked."""
    if isinstance(returned, tuple) and len(returned) != 2:
        raise UserError(
            f"{name} must return a loss, or a loss and its weight, not {len(returned)} values"
        )
    loss, weight = returned if isinstance(returned, tuple) else (returned, None)
    if not isinstance(loss, Tensor) or not loss.requires_grad:
        raise _NoLossError(f"it is {described(loss)}")
    if loss.numel() != 1:
        raise UserError(
            f"{name} must be one number, not of shape {list(loss.shape)}: return its mean"
        )
    if isinstance(returned, tuple):
        try:
            weight = float(weight)
        except (TypeError, ValueError):
            weight = 0.0
        if not 0 < weight < float("inf"):
            raise UserError(f"{name} must return a weight above 0, not {shown(returned[1])}")
    return loss, weight


def _check_number(name: str, loss: Tensor, g: Tensor) -> None:
    if loss.isnan() and g.isfinite().all():
        raise UserError(f"{name} is not a number: is its memory empty?")


def described(value: object) -> str:
    """Return what a value is instead of what it should be."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            return "a tensor"
        return "a tensor without a gradient" if value.numel() else "an empty tensor"
    return "None" if value is None else f"a {type(value).__name__}"
