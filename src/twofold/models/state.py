"""What a network keeps apart from its parameters, and whether it changes what it is given.

A network may assign a new buffer in `forward`, count its passes in a plain number, or change its
inputs in place. A copy that follows its parameters and buffers would then compute something else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

NOTHING: Mapping[str, Any] = MappingProxyType({})
PASSES = 3  # in training mode, when a network is examined
USUAL = frozenset(vars(nn.Module()))  # what every module has


def own_state(module: nn.Module) -> list[Any]:
    """Return what changes if a network changes itself other than by its tensors' values."""
    values: list[Any] = []
    for part in module.modules():
        values += [id(tensor) for tensor in part._buffers.values()]
        attributes = vars(part)
        if len(attributes) > len(USUAL):
            values += [_told(value) for name, value in attributes.items() if name not in USUAL]
    return values


def _told(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value) if value != value else value  # NaN would differ from itself
    if isinstance(value, Tensor):
        return id(value), 0 if value.is_inference() else value._version
    if isinstance(value, list | tuple | set | frozenset):
        return [_told(item) for item in value]
    if isinstance(value, dict):
        return [(_told(key), _told(item)) for key, item in value.items()]
    return id(value)


def examine(
    module: nn.Module, sample: Tensor, given: Mapping[str, Any] = NOTHING
) -> tuple[bool, bool]:
    """Return whether a network keeps state of its own, and whether it changes its inputs.

    It is found out on a copy. A network that cannot be copied or does not take the sample is
    reported as one that does neither: whatever is wrong with it shows where it is trained.

    given: further arguments of the network.
    """
    try:
        with torch.random.fork_rng(_gpus(sample)), torch.no_grad():
            return _examine(detached_copy(module), sample, given)
    except Exception:  # in a network of the user's, anything can happen
        return False, False


def _examine(module: nn.Module, sample: Tensor, given: Mapping[str, Any]) -> tuple[bool, bool]:
    state, changes_inputs = own_state(module), False
    for training in [True] * PASSES + [False]:
        module.train(training)
        buffers = [] if training else [tensor.clone() for tensor in module.buffers()]
        inputs = sample.clone()
        module(inputs, **given)
        changes_inputs |= not torch.equal(inputs, sample)
    after = list(module.buffers())  # as evaluation has left them
    unchanged = len(after) == len(buffers) and all(map(torch.equal, after, buffers))
    return not unchanged or own_state(module) != state, changes_inputs


def detached_copy(module: nn.Module) -> nn.Module:
    """Return a copy of a network, without the graphs of tensors that it keeps."""
    excluded = {
        id(tensor): tensor.detach().clone()
        for part in module.modules()
        for tensor in _tensors(vars(part).values())
        if not tensor.is_leaf
    }
    return copy.deepcopy(module, excluded)


def alike(one: Any, other: Any) -> bool:
    """Tell whether tensors have the same shape, and lists of things the same length.

    Of a dictionary, the tensors are compared: other entries may come with training.
    """
    if isinstance(other, dict):
        tensors = {key: value for key, value in other.items() if isinstance(value, Tensor)}
        return isinstance(one, dict) and all(alike(one.get(k), v) for k, v in tensors.items())
    if isinstance(other, Tensor):
        return isinstance(one, Tensor) and (one.shape, one.dtype) == (other.shape, other.dtype)
    if isinstance(other, list):
        return isinstance(one, list) and len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other)


def _tensors(values: Any) -> list[Tensor]:
    tensors = []
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple | set):
            tensors += _tensors(value)
        elif isinstance(value, dict):
            tensors += _tensors(value.values())
    return tensors


def _gpus(sample: Tensor) -> list[int]:
    return [sample.device.index or 0] if sample.device.type == "cuda" else []
