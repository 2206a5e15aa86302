"""Random draws that depend on their place only, so that methods can be compared in pairs.

A draw is a function of the seed, its purpose and its place (the task, the iteration). It does not
depend on earlier draws. Two methods with the same seed therefore start from the same weights and
see the same batches, memory and replay, whatever else each of them draws. A run that continues
after an interruption has no random state to restore. All draws are made on the CPU, so a GPU sees
the same data. Only the network's own draws, such as dropout, come from torch: see `seeded`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

Purpose = Literal[
    "initialisation",
    "batches",
    "blur",
    "parts",
    "memory",
    "replay",
    "mixing",
    "evaluation",
    "validation",
    "diagnosis",
    "augmentation",
    "routine",
    "network",
    "term",
]


def stream(seed: int, purpose: Purpose, *place: int) -> np.random.Generator:
    """Return the generator for one purpose at one place."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *place])


@contextmanager
def seeded(random: np.random.Generator, device: torch.device) -> Iterator[None]:
    """Seed torch's generators with a draw from `random`, and restore their states afterwards."""
    gpus = [device.index] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus, device_type="cuda"):
        seed = int(random.integers(2**63))
        # torch.manual_seed seeds all devices and takes a hundred times as long.
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            torch.cuda.default_generators[gpu].manual_seed(seed)
        yield


def sample(rows: NDArray[np.int64], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Draw `count` distinct rows, or return all rows if there are no more."""
    if len(rows) <= count:
        return rows
    return rows[random.choice(len(rows), count, replace=False, shuffle=False)]
