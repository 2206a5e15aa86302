"""Decoded datasets, and their sources and copies on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from twofold.datasets.statistics import Constants


@dataclass(frozen=True, eq=False)
class Split:
    """Images with their labels, in the publisher's order."""

    images: NDArray[np.uint8]  # [N, H, W, C]
    labels: NDArray[np.int64]  # [N]
    coarse: NDArray[np.int64] | None = None  # [N], the super-classes of CIFAR-100


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test set over the same classes; label k is `class_names[k]`."""

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    version: str = ""  # a digest of its contents, once it is in the cache

    @cached_property
    def statistics(self) -> Constants:
        """Mean and deviation of the training images' channels. The cache stores them."""
        from twofold.datasets.statistics import as_tensor, channel_statistics  # imports torch

        return channel_statistics(as_tensor(self.train.images))


@dataclass(frozen=True)
class Copy:
    """One copy of a dataset on disk, found but not read."""

    where: Path  # for messages
    files: tuple[Path, ...]  # if one of them changes, the copy is decoded again
    decode: Callable[[], Dataset]


@dataclass(frozen=True)
class Source:
    """The description of a dataset before it is read. A module of this package defines one."""

    name: str
    title: str
    files: str  # what `find` looks for, for messages
    find: Callable[[Path], Copy | None]
    fetch: Callable[[Path], None] | None  # None: it may not be redistributed
    digest: str | None  # of the published contents; None: it circulates in several versions
    origin: str = ""  # where to ask for a dataset that cannot be fetched


def digest(dataset: Dataset) -> str:
    """Return the sha256 of all contents of a decoded dataset."""
    sha = hashlib.sha256("\n".join(dataset.class_names).encode())
    for split in (dataset.train, dataset.test):
        for array in (split.images, split.labels, split.coarse):
            if array is not None:
                sha.update(f"{array.shape}".encode())
                little_endian = array.dtype.newbyteorder("<")
                sha.update(np.ascontiguousarray(array, dtype=little_endian).data)
    return sha.hexdigest()
