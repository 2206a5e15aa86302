"""Gradients of which an optimiser's second moment sees a different one than its first moment.

Adam divides a direction by the root of its own mean square. If a routine has changed the gradient,
that undoes a part of the change: a projected component becomes small, and its mean square with it.
With `route="first"` the changed gradient goes into the first moment, and the unchanged gradient
into the second.

No optimiser is rewritten for this. A `Routed` gradient is a pair. Torch's own code computes with
the changed gradient, except where it squares a gradient or, in Adamax, compares magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_map

from twofold.errors import UserError

Route = Literal["both", "first"]

# The optimisers of torch that divide by a mean of squares, which takes the gradient elementwise.
ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta")


class Routed(Tensor):
    """A changed gradient that carries the unchanged one, `second`, for the second moment."""

    second: Tensor

    @staticmethod
    def of(first: Tensor, second: Tensor) -> Routed:
        """Return a pair that shares the memory of both."""
        routed = first.as_subclass(Routed)
        routed.second = second
        return routed

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        def call(part: Callable[[Any], Any]) -> Any:
            return func(*tree_map(part, args), **tree_map(part, kwargs or {}))

        name = getattr(func, "__name__", "")
        target = (kwargs or {}).get("out", args[0])
        in_place = "out" in (kwargs or {}) or (name.endswith("_") and not name.endswith("__"))
        with torch._C.DisableTorchFunctionSubclass():
            if in_place and not isinstance(target, Routed):
                return call(_second if _is_second_moment(name, args) else _first)
            result = call(_first)
            if not isinstance(result, Tensor):
                return result
            other = call(_second)
        return target if in_place else Routed.of(result, other)


def _first(value: Any) -> Any:
    return value.as_subclass(Tensor) if isinstance(value, Routed) else value


def _second(value: Any) -> Any:
    return value.second if isinstance(value, Routed) else value


def _is_second_moment(name: str, args: Any) -> bool:
    """Tell whether an operation adds a square (v + g g) or takes a larger magnitude (Adamax)."""
    if name == "addcmul_":
        return len(args) > 2 and isinstance(args[1], Routed) and isinstance(args[2], Routed)
    return name == "maximum"


def check_route(route: str, optimizer: Optimizer) -> None:
    """Raise UserError if an optimiser can't treat its moments differently."""
    if route not in ("both", "first"):
        raise UserError(f"route must be 'both' or 'first', not {route!r}")
    if route == "both":
        return
    name = type(optimizer).__name__
    adaptive = tuple(getattr(torch.optim, each) for each in ADAPTIVE)
    if not isinstance(optimizer, adaptive):
        raise UserError(
            f"route='first' needs an optimiser with a second moment ({', '.join(ADAPTIVE)}), "
            f"not {name}"
        )
    for group in optimizer.param_groups:
        for key in ("fused", "capturable", "differentiable", "centered"):
            if group.get(key):
                raise UserError(f"route='first' can't look into {name} with {key}=True")
        group["foreach"] = False  # the loop over tensors, whose operations are known
