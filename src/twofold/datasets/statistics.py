"""The constants of whitening: the mean and the standard deviation of each channel."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Constants = tuple[tuple[float, ...], tuple[float, ...]]  # means and deviations, in 0..1


def as_tensor(array: NDArray[np.uint8] | NDArray[np.int64]) -> Tensor:
    """Return a tensor that shares the array's memory, which may be mapped read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


class Pixels(Protocol):
    """Images that can be read in parts: a tensor, or anything else of that kind."""

    @property
    def shape(self) -> Sequence[int]: ...
    def split(self, size: int) -> Iterable[Tensor]: ...
    def numel(self) -> int: ...


def channel_statistics(images: Tensor | Pixels) -> Constants:
    """Return the mean and deviation of each channel over all pixels, on the scale 0..1."""
    channels = images.shape[-1]
    total = torch.zeros(2, channels, dtype=torch.float64)
    for chunk in images.split(2000):  # small enough for the processor's cache
        pixels = chunk.reshape(-1, channels).float().div_(255)
        total[0] += pixels.sum(0, dtype=torch.float64)
        total[1] += pixels.square().sum(0, dtype=torch.float64)
    mean, square = total / (images.numel() / channels)
    return tuple(mean.tolist()), tuple((square - mean**2).sqrt().tolist())
