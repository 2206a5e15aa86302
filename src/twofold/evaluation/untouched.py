"""Evaluation that leaves no trace: random states, buffers, gradients and modes stay as they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from torch import nn


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Keep the states of all generators: of torch on every device, of numpy and of Python."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    states = [torch.cuda.get_rng_state(gpu) for gpu in gpus]
    metal = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    state, numbers, python = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        np.random.set_state(numbers)
        random.setstate(python)
        for gpu, gpu_state in zip(gpus, states, strict=True):
            torch.cuda.set_rng_state(gpu_state, gpu)
        if metal is not None:
            torch.mps.set_rng_state(metal)


def seed_all(seed: int) -> None:
    """Seed all generators; to be used within `kept_random_states`."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


@contextmanager
def kept_buffers(module: nn.Module) -> Iterator[None]:
    """Keep the buffers of a module, such as statistics that a forward pass updates."""
    kept = [
        (owner, name, buffer, buffer.clone(), buffer._version)
        for owner in module.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None and not buffer.is_inference()
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for owner, name, buffer, old, version in kept:
                if buffer._version != version:
                    buffer.copy_(old)
                owner._buffers[name] = buffer


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
    """Return the autocast that is in force, without its cache.

    The cache would hold casts of the weights that were made without gradients, and training would
    use them.
    """
    if not torch.is_autocast_enabled(device.type):
        return nullcontext()
    dtype = torch.get_autocast_dtype(device.type)
    return torch.autocast(device.type, dtype=dtype, cache_enabled=False)
