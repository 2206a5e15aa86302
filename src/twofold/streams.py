"""Random draws as functions of where they are made, so that methods can be compared in pairs.

A draw depends on the seed, on its purpose and on its place (the task, the iteration), and on
nothing drawn before. So two methods with one seed start from the same weights and see the same
batches, memory and replay, however much else either of them draws; and a run that goes on after
an interruption has no random state to restore. Draws are made on the host: a GPU sees the same.
"""

from __future__ import annotations

import zlib
from typing import Literal

import numpy as np

Purpose = Literal[
    "initialisation",
    "batches",
    "memory",
    "replay",
    "mixing",
    "evaluation",
    "augmentation",
    "routine",
]


def stream(seed: int, purpose: Purpose, *place: int) -> np.random.Generator:
    """The generator for one purpose at one place."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *place])
