"""What a dataset is once decoded, and where one is found before that."""

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

    @cached_property
    def statistics(self) -> Constants:
        """Of the training images' channels. The cache has them ready."""
        from twofold.datasets.statistics import as_tensor, channel_statistics  # takes torch

        return channel_statistics(as_tensor(self.train.images))


@dataclass(frozen=True)
class Copy:
    """One copy of a dataset on disk, found but not read."""

    where: Path  # for messages
    files: tuple[Path, ...]  # a change in one of them asks for a new decoding
    decode: Callable[[], Dataset]


@dataclass(frozen=True)
class Source:
    """All that is known of a dataset before it is read. One file of this package holds one."""

    name: str
    title: str
    files: str  # what `find` looks for, for messages
    find: Callable[[Path], Copy | None]
    fetch: Callable[[Path], None] | None  # None: nobody may hand it out
    digest: str | None  # of the published contents; None: it circulates in several versions
    origin: str = ""  # where to ask for what cannot be fetched


def digest(dataset: Dataset) -> str:
    """The sha256 of everything a decoded dataset holds."""
    sha = hashlib.sha256("\n".join(dataset.class_names).encode())
    for split in (dataset.train, dataset.test):
        for array in (split.images, split.labels, split.coarse):
            if array is not None:
                sha.update(f"{array.shape}".encode())
                little = array.dtype.newbyteorder("<")
                sha.update(np.ascontiguousarray(array, dtype=little).data)
    return sha.hexdigest()
