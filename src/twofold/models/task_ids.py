"""Networks that know the tasks of their examples.

With scenario task, the outputs of a network are divided among the tasks, as in a network with a
head per task: an example is answered by the outputs of its own task.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from twofold.errors import UserError

ARGUMENT = "task"  # of a network's `forward`
# Far below every logit, and finite, so that the difference of two is 0 and not NaN.
ABSENT = -1e9


def takes_task(module: nn.Module) -> bool:
    """Tell whether a network takes the ids of tasks."""
    return ARGUMENT in _parameters(module)


def needs_task(module: nn.Module) -> bool:
    """Tell whether a network cannot be called without them."""
    parameter = _parameters(module).get(ARGUMENT)
    return parameter is not None and parameter.default is inspect.Parameter.empty


def _parameters(module: nn.Module) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):  # a function without a signature
        return {}


def task_argument(module: nn.Module, tasks: Tensor | None) -> dict[str, Any]:
    """Return the task ids as the argument of a network that takes them."""
    return {ARGUMENT: tasks} if tasks is not None and takes_task(module) else {}


def chunks(x: Tensor, tasks: Tensor | None, size: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield at most this many inputs at once, with the ids of their tasks if these are known."""
    parts = x.split(size)
    yield from zip(parts, [None] * len(parts) if tasks is None else tasks.split(size), strict=True)


def own_logits(logits: Tensor, own: Tensor | None, tasks: Tensor | None) -> Tensor:
    """Return the logits of each example's own task; those of other tasks are put far below them.

    own: a row per task that marks its outputs; None if the tasks of examples are not known.
    """
    if own is None:
        return logits
    if tasks is None:
        raise UserError(
            "with scenario task, a forward pass needs the tasks of its examples: write "
            "Term(role, weight, x, loss, batch.tasks) and net(x, batch.tasks)"
        )
    return torch.where(own[tasks], logits, ABSENT)
