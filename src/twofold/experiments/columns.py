"""Columns of curves by name, read from a file when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twofold.errors import UserError

Array = NDArray[np.generic]


class MissingColumnError(UserError, KeyError):
    """A column that the curves lack: no routine logged it, or the archive left it out."""

    __str__ = Exception.__str__  # KeyError would quote the message


class StoredColumns(Mapping[str, Array]):
    """The columns that `read` returns. It is called when a column is first needed."""

    def __init__(self, where: str, read: Callable[[], dict[str, Array]]) -> None:
        self._where, self._read = where, read

    @cached_property
    def _columns(self) -> dict[str, Array]:
        return self._read()

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            there = ", ".join(self._columns)
            raise MissingColumnError(f"{self._where} has no column {name!r}: there are {there}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def read_parquet(file: Path) -> dict[str, Array]:
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, error) from None
    return {name: table[name].to_numpy() for name in table.column_names}


def unreadable(file: Path, error: Exception) -> UserError:
    return UserError(f"{file} can't be read: {str(error).strip().splitlines()[0]}")
