"""Inputs that stay in files: memory maps, of which only the rows of a batch are read."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

LEAST = 2**28  # bytes in files; fewer are read into memory, where they are faster
DONT_NEED = 4  # MADV_DONTNEED of Linux
ADDRESSES = Path("/proc/self/maps")  # on Linux: which file is mapped at which address


@dataclass(frozen=True)
class File:
    """The file behind a tensor.

    current: whether the file has the tensor's numbers. A private map may have been written to.
    """

    path: Path
    offset: int  # of the tensor's first number, in bytes
    current: bool


class Mapped:
    """Inputs of several tasks that stay where they are, and are read by rows.

    It has what `Pool` needs of a tensor.

    convert: a function from rows, as they are stored, to inputs.
    """

    def __init__(self, parts: Sequence[Tensor], convert: Callable[[Tensor], Tensor]) -> None:
        self.parts, self._convert = tuple(parts), convert
        self._ends = np.cumsum([len(part) for part in self.parts])
        files = [file_of(part) for part in self.parts]
        self._released = [file is not None and file.current for file in files]
        first = convert(self.parts[0][:1])
        self.dtype, self.device = first.dtype, first.device
        self.shape: tuple[int, ...] = (int(self._ends[-1]), *first.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def numel(self) -> int:
        return int(np.prod(self.shape))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Return rows, as a tensor does."""
        assert dim == 0, "only rows are selected"
        rows = index.cpu()
        places = torch.from_numpy(np.searchsorted(self._ends, rows.numpy(), side="right"))
        x = torch.empty(len(rows), *self.shape[1:], dtype=self.dtype)
        for place in places.unique().tolist():
            here = places == place
            start = int(self._ends[place]) - len(self.parts[place])
            x[here] = self._convert(self.parts[place].index_select(0, rows[here] - start))
            self._release(place)
        return x.to(index.device)

    def split(self, size: int) -> Iterator[Tensor]:
        """Yield all rows, at most this many at once."""
        for place, part in enumerate(self.parts):
            for rows in part.split(size):
                yield self._convert(rows)
                self._release(place)

    def _release(self, place: int) -> None:
        """Give the pages of a part back, which the system counts as memory of this process.

        It may map a megabyte around each row that is read. The file has what is given back.
        """
        if self._released[place]:
            part = self.parts[place]
            last = sum((n - 1) * step for n, step in zip(part.shape, part.stride(), strict=True))
            _give_back(part.data_ptr(), (last + 1) * part.element_size())


def pooled(parts: Sequence[Tensor], convert: Callable[[Tensor], Tensor]) -> Tensor | Mapped:
    """Return the inputs of all tasks as one tensor or, if much of them is in files, as they are."""
    if sum(part.nbytes for part in parts if file_of(part)) >= LEAST:
        return Mapped(parts, convert)
    return torch.cat([convert(part) for part in parts])


def file_of(tensor: Tensor) -> File | None:
    """Return the file that is mapped at a tensor's place; None if it is in memory.

    Linux tells it for every kind of map, and torch for those of `torch.from_file(shared=True)`.
    """
    if tensor.device.type != "cpu" or not tensor.numel():
        return None
    if ADDRESSES.exists():
        return _file_at(tensor.data_ptr())
    storage = tensor.untyped_storage()
    path, offset = storage.filename, tensor.data_ptr() - storage.data_ptr()
    return File(Path(path), offset, current=True) if path else None


def _file_at(address: int) -> File | None:
    for line in ADDRESSES.read_text().splitlines():
        place, rights, before, _, inode, *path = line.split(maxsplit=5)
        start, end = (int(text, 16) for text in place.split("-"))
        if not start <= address < end:
            continue
        if inode == "0" or not path or path[0].startswith("/dev/") or not Path(path[0]).is_file():
            return None  # memory, of this process or shared
        private = rights[1] == "w" and rights[3] == "p"
        return File(Path(path[0]), int(before, 16) + address - start, current=not private)
    return None


def _give_back(address: int, size: int) -> None:
    if sys.platform == "linux":
        start = address - address % mmap.PAGESIZE
        libc = ctypes.CDLL(None)
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(address + size - start), DONT_NEED)
