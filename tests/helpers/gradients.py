"""Random gradients, and how often a property is tried on them."""

from __future__ import annotations

import torch
from hypothesis import settings
from hypothesis import strategies as st

seeds = st.integers(0, 2**31)
few_examples = settings(max_examples=50, deadline=None, derandomize=True)


def random_gradients(seed: int, count: int, size: int = 30) -> torch.Tensor:
    """Return this many gradients, one per row, in double precision."""
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, size, generator=random, dtype=torch.float64)


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.dot(a, b) / (a.norm() * b.norm()))
