"""Random draws as functions of where they are made, so that methods can be compared in pairs.

A draw depends on the seed, on its purpose and on its place (the task, the iteration), and on
nothing drawn before. So two methods with one seed start from the same weights and see the same
batches, memory and replay, however much else either of them draws; and a run that goes on after
an interruption has no random state to restore. Draws are made on the host: a GPU sees the same.
Only what a network draws by itself (dropout) is torch's to draw; `seeded` says from where.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch

Purpose = Literal[
    "initialisation",
    "batches",
    "memory",
    "replay",
    "mixing",
    "evaluation",
    "augmentation",
    "routine",
    "network",
]


def stream(seed: int, purpose: Purpose, *place: int) -> np.random.Generator:
    """The generator for one purpose at one place."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *place])


@contextmanager
def seeded(random: np.random.Generator, device: torch.device) -> Iterator[None]:
    """torch's own generators, started at a draw of this one; afterwards they are as before."""
    gpus = [device.index] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus, device_type="cuda"):
        seed = int(random.integers(2**63))
        # torch.manual_seed does this for all devices, and takes a hundred times as long.
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            torch.cuda.default_generators[gpu].manual_seed(seed)
        yield
