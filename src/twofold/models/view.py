"""A module as it is evaluated: it is read, and left exactly as it is."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from twofold.models.task_ids import own_logits, takes_task, task_argument


class View:
    """A view of a module that changes nothing in it: no parameter, no mode and no buffer.

    keeps_state: whether the module keeps state apart from its parameters and buffers, which a
        faster copy would not follow.
    changes_inputs: whether it changes its inputs in place, and is given copies.
    own: the outputs of each task, if the tasks of examples are known.
    """

    keeps_state = changes_inputs = False
    own: Tensor | None = None

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.batch_norms = [m for m in parts_of(module) if isinstance(m, _BatchNorm)]

    @property
    def device(self) -> torch.device:
        return device_of(self.module)

    @property
    def has_batch_norm(self) -> bool:
        return bool(self.batch_norms)

    @property
    def has_convolutions(self) -> bool:
        return any(isinstance(m, nn.Conv2d) for m in parts_of(self.module))

    @property
    def has_hooks(self) -> bool:
        """Whether functions of the user's are called in a forward pass; a copy would call them."""
        return have_hooks(parts_of(self.module))

    @property
    def takes_task(self) -> bool:
        """Whether the module takes the ids of tasks."""
        return takes_task(self.module)

    @property
    def told(self) -> bool:
        """Whether the module takes the ids of tasks, and gets them."""
        return self.own is not None and self.takes_task

    def __call__(self, x: Tensor, tasks: Tensor | None = None) -> Tensor:
        """Return the logits; with scenario task, those of each example's own task."""
        return self.among_own(self.all_logits(x, tasks), tasks)

    def among_own(self, logits: Tensor, tasks: Tensor | None) -> Tensor:
        """Return logits or scores, with those of other tasks far below each example's own."""
        return own_logits(logits, self.own, tasks)

    def all_logits(self, x: Tensor, tasks: Tensor | None = None) -> Tensor:
        """Return the logits of all outputs."""
        module = self.module
        if self.changes_inputs:
            x = x.clone()
        # A module that was compiled in place is called as it was written: in evaluation mode, it
        # would be compiled once more.
        compiled = getattr(module, "_compiled_call_impl", None) is not None
        given = task_argument(module, tasks)
        logits: Tensor = module._call_impl(x, **given) if compiled else module(x, **given)
        return logits

    def copy(self) -> nn.Module:
        """Return an independent copy of the network as it is now, which is not to be trained."""
        return copy.deepcopy(self.module).requires_grad_(False).eval()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode without gradients; afterwards every submodule is in its own mode.

        The modes are set directly: a module's own `train` may do more, such as merging weights. It
        is no inference mode: a network may keep a tensor that it makes, and train with it later.
        """
        training = [m for m in parts_of(self.module) if m.training]
        for module in training:  # without `nn.Module.__setattr__`, which takes ten times as long
            object.__setattr__(module, "training", False)
        try:
            with torch.inference_mode(False), torch.no_grad():
                yield
        finally:
            for module in training:
                object.__setattr__(module, "training", True)


def parts_of(module: nn.Module) -> list[nn.Module]:
    """Return a module and all modules in it, in the order of `modules`, which takes longer."""
    parts: dict[nn.Module, None] = {}
    rest: list[nn.Module | None] = [module]
    while rest:
        part = rest.pop()
        if part is not None and part not in parts:
            parts[part] = None
            if part._modules:
                rest.extend(reversed(part._modules.values()))
    return list(parts)


def have_hooks(parts: Iterable[nn.Module]) -> bool:
    """Tell whether functions are called in the forward passes of these modules."""
    return any(part._forward_hooks or part._forward_pre_hooks for part in parts)


def device_of(module: nn.Module) -> torch.device:
    """Return the device of the first parameter or buffer; the CPU for a module without any."""
    first = next(chain(module.parameters(), module.buffers()), None)
    return torch.device("cpu") if first is None else first.device
