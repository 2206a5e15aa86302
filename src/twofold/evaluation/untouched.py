"""Evaluation that leaves no trace: random states, buffers, gradients and modes stay as they are."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.random import MT19937, mtrand
from torch import Tensor, nn

from twofold.errors import UserError
from twofold.evaluation.generators import NumpyState
from twofold.models.state import USUAL

CUDA, METAL = torch.backends.cuda.is_built(), torch.backends.mps.is_available()
# What a pass may change in place, and what can be copied, emptied and filled again.
CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict, Counter)


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Keep the states of all generators: of torch on every device, of numpy and of Python."""
    gpus = torch.cuda.device_count() if CUDA and torch.cuda.is_initialized() else 0
    states = [torch.cuda.get_rng_state(gpu) for gpu in range(gpus)]
    metal = torch.mps.get_rng_state() if METAL else None
    state, python, numbers = torch.get_rng_state(), random.getstate(), NumpyState()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(python)
        numbers.restore()
        for gpu, gpu_state in enumerate(states):
            torch.cuda.set_rng_state(gpu_state, gpu)
        if metal is not None:
            torch.mps.set_rng_state(metal)


def seed_all(seed: int) -> None:
    """Seed all generators; to be used within `kept_random_states`."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    if not isinstance(mtrand.get_bit_generator(), MT19937):  # numpy keeps its normal number
        np.random.set_state({**np.random.get_state(legacy=False), "has_gauss": 0})
    random.seed(seed)


@contextmanager
def kept_parts(parts: Sequence[nn.Module]) -> Iterator[None]:
    """Keep the attributes and buffers of a module's parts, such as a number of passes.

    Lists and their like get their old contents again. A tensor that is no buffer has no copy, so a
    pass that changes it in place is refused.
    """
    kept = [(vars(part), vars(part).copy()) for part in parts]
    buffers = [
        (part._buffers, name, buffer, buffer.clone(), buffer._version)
        for part in parts
        for name, buffer in part._buffers.items()
        if buffer is not None and not buffer.is_inference()
    ]
    own = [item for _, old in kept for item in old.items() if item[0] not in USUAL]
    contents = [(value, value.copy()) for _, value in own if type(value) in CONTAINERS]
    versions = [
        (name, value, value._version)
        for name, value in own
        if isinstance(value, Tensor) and not value.is_inference()
    ]
    try:
        yield
    finally:
        for now, old in kept:
            now.update(old)
            if len(now) > len(old):  # there are new ones
                now.clear()
                now.update(old)
        for owner, name, buffer, copied, version in buffers:
            if buffer._version != version:
                with torch.no_grad():
                    buffer.copy_(copied)
            owner[name] = buffer
        for value, content in contents:
            _refill(value, content)
    for name, value, version in versions:
        if value._version != version:
            raise UserError(
                f"evaluation changes {name!r} of the model in place: register it as a buffer, so "
                "that its value is kept"
            )


def _refill(value: Any, content: Any) -> None:
    value.clear()
    if isinstance(value, list | deque):
        value.extend(content)
    else:
        value.update(content)


@contextmanager
def kept_weights(module: nn.Module, changer: str) -> Iterator[None]:
    """Refuse a change of the weights: to keep them would take a copy each time."""
    weights = [p for p in module.parameters() if not p.is_inference()]
    versions = [p._version for p in weights]
    yield
    if versions != [p._version for p in weights]:
        raise UserError(
            f"{changer} changes the weights of the model: let it work on copy.deepcopy(model)"
        )


@contextmanager
def kept_gradients(module: nn.Module) -> Iterator[None]:
    """Put gradients aside without copying them, and keep which parameters are trained."""
    kept = [(p, p.grad, p.requires_grad) for p in module.parameters()]
    for parameter, _, _ in kept:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient, trained in kept:
            parameter.requires_grad_(trained)
            parameter.grad = gradient


def same_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast that is in force on a device, without its cache.

    The cache would hold casts of the weights that were made without gradients, and training would
    use them.
    """
    dtype = torch.get_autocast_dtype(device.type)
    return torch.autocast(device.type, dtype=dtype, cache_enabled=False)
