"""Checks of a user's own network before it is trained, with errors of one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from twofold.errors import UserError


def built(make: Callable[[], Any]) -> nn.Module:
    """Return the network that a user's function returns, which must be one that can be trained."""
    if isinstance(make, nn.Module) or not callable(make):
        raise UserError(
            "model must be a function that returns a new network, such as lambda: nn.Linear(8, 2), "
            f"not {type(make).__name__}"
        )
    try:
        module = make()
    except Exception as error:  # in a function of the user's, anything can happen
        raise UserError(f"the network can't be built: {_said(error)}") from error
    if not isinstance(module, nn.Module):
        raise UserError(f"model must return a torch.nn.Module, not {type(module).__name__}")
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            raise UserError(f"the network's {name!r} has no size yet: call the network once")
        if parameter.is_meta or not parameter.is_floating_point():
            kind = "on the meta device" if parameter.is_meta else f"of type {parameter.dtype}"
            raise UserError(f"the network's {name!r} is {kind}, and cannot be trained")
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise UserError("the network has no parameters to train")
    return module


def outputs_of(network: Callable[[Tensor], Any], x: Tensor) -> int:
    """Return the number of outputs for inputs like these; they must be logits to train with."""
    try:
        with torch.enable_grad():
            logits = network(x)
    except Exception as error:
        raise UserError(_failure(x, error)) from error
    if not isinstance(logits, Tensor):
        raise UserError(f"the network must return a tensor of logits, not {type(logits).__name__}")
    shape = list(logits.shape)
    if len(shape) != 2 or shape[0] != len(x):
        raise UserError(f"the network returns {shape} for {len(x)} inputs: expected [{len(x)}, C]")
    if not logits.is_floating_point() or not logits.requires_grad:
        raise UserError("the network's outputs have no gradient, so it cannot be trained")
    return shape[1]


def _failure(x: Tensor, error: Exception) -> str:
    """Return why a network fails on inputs; with tokens, there are two usual reasons."""
    if x.is_floating_point():
        return f"the network fails on inputs of shape {list(x.shape)}: {_said(error)}"
    low, high = int(x.min()), int(x.max())
    if isinstance(error, IndexError) and low < 0:
        return f"tokens count from 0, and there is {low}: {_said(error)}"
    if isinstance(error, IndexError):
        return f"the network knows no token {high}, so it needs a larger embedding: {_said(error)}"
    return (
        f"the network takes no tokens (int64, of shape {list(x.shape)}): it must begin with an "
        f"embedding ({_said(error)})"
    )


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
