"""Columns of curves by name, read from a file when they are first needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twofold.errors import UserError
from twofold.experiments.plain import WrongContentError, read_bytes
from twofold.text import inert

Array = NDArray[np.generic]

LARGEST = 2**29  # bytes of curves, in a file and in memory; measures take several times as much
OBJECT = 120  # bytes of an array besides its numbers
COLUMNS = 20_000
FOOTER = 8 * 2**20  # bytes that describe the columns: each takes 25 times as much memory
KINDS = {f"{of}{kind}" for of in ("", "raw_") for kind in ("accuracy", "lowest")}
NUMPY = {pa.from_numpy_dtype(kind): np.dtype(kind) for kind in "bBhHiIqQefd"}  # of all numbers
RUN = "run"  # the column of an archive that tells other programs whose curves they are


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

    def hold(self, columns: dict[str, Array]) -> None:
        """Take columns that were read elsewhere, so that they are not read again."""
        self.__dict__["_columns"] = columns

    def forget(self) -> None:
        """Free the memory of columns that were read. They are read again if they are needed."""
        self.__dict__.pop("_columns", None)

    @property
    def size(self) -> int:
        """The bytes of memory that the columns take now."""
        return sum(OBJECT + each.nbytes for each in self.__dict__.get("_columns", {}).values())

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            names = ", ".join(self._columns)
            raise MissingColumnError(f"{self._where} has no column {name!r}: there are {names}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def read_parquet(file: Path) -> dict[str, Array]:
    """Read the columns of a Parquet file, if they are numbers and fit the memory."""
    try:
        content = read_bytes(file, LARGEST)
    except UserError as error:
        raise type(error)(f"{file.parent}: {error}") from None
    return parquet_columns(content, file)


def parquet_columns(content: bytes, file: Path) -> dict[str, Array]:
    """Return the columns of what was read from a Parquet file, with the same checks."""
    length = content[-8:].removesuffix(b"PAR1")  # of the description, at the end of the file
    if len(length) == 4 and int.from_bytes(length, "little") > FOOTER:
        raise WrongContentError(f"{file}: the description of its columns is too long")
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as parquet:
            names = check_sizes(parquet.schema_arrow, [parquet.metadata], file)
            table = parquet.read(names, use_threads=False)  # for small files, threads cost more
    except (OSError, ValueError, pa.ArrowException, MemoryError) as error:
        raise unreadable(file, error) from None
    return as_columns(table)


def check_sizes(schema: pa.Schema, parts: Iterable[Any], file: Path) -> list[str]:
    """Refuse curves that are not numbers, or that would take too much memory.

    Return the names of the columns to read: those of numbers, since texts may have any size.
    """
    for field in schema:
        kind = field.type
        if field.name != RUN and not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise WrongContentError(
                f"{file}: the column {field.name[:60]!r} is not made of numbers"
            )
    rows = sum(part.num_rows for part in parts)
    if len(schema) > COLUMNS or rows * max(len(schema), 1) * 8 > LARGEST:
        raise WrongContentError(f"{file}: {rows:,} rows of {len(schema):,} columns are too many")
    if len(set(schema.names)) < len(schema.names):
        raise WrongContentError(f"{file}: two columns have the same name")
    return [name for name in schema.names if name != RUN]


def as_columns(table: pa.Table) -> dict[str, Array]:
    """Return the columns of a table as arrays, without those that are null."""
    named = zip(table.column_names, table.columns, strict=True)
    return {sys.intern(name): _array(column) for name, column in named if not column.null_count}


def _array(column: pa.ChunkedArray) -> Array:
    """Return the numbers of a column. `to_numpy` would import pandas, which takes half a second."""
    kind = NUMPY[column.type]
    parts = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.empty(0, kind)


def checked(columns: dict[str, Array], summary: Mapping[str, Any], where: str) -> dict[str, Array]:
    """Return the curves of a run, compared with its summary and with each other."""
    task = np.asarray(columns.get("task", ()))
    expected = summary.get("iterations", len(task))
    if len(task) == 0 or len(task) != expected:
        raise WrongContentError(
            f"{where}: there are {len(task):,} iterations, expected {expected:,}"
        )
    kinds = {name.rpartition("_")[0] for name in columns if name.rpartition("_")[2].isdigit()}
    tasks = len(summary.get("accuracy_after_task", ())) or None
    for kind in kinds & KINDS:
        names = [name for name in columns if name.rpartition("_")[0] == kind]
        past = tasks and tasks - ("lowest" in kind)  # the last task has no later one
        whole = "raw" in kind or len(names) in (past or len(names), tasks)
        if not whole or names != [f"{kind}_{k + 1}" for k in range(len(names))]:
            raise WrongContentError(f"{where}: the columns {kind}_K are not those of {tasks} tasks")
        values = np.stack([np.asarray(columns[name], np.float64) for name in names])
        if "raw" not in kind and "test_sets" not in summary and not _percent(values):
            raise WrongContentError(f"{where}: {kind} must be from 0 to 100")
    for kind in ("accuracy", "raw_accuracy"):
        if summary.get(f"{kind}_after_task") and kind not in kinds:
            words = {"accuracy": "accuracies", "raw_accuracy": "raw accuracies"}[kind]
            raise WrongContentError(f"{where}: there are no {words}")
    if not _counts_up(task, tasks):
        raise WrongContentError(
            f"{where}: task must count from 1 to {tasks or 'the last'}, in order"
        )
    return columns


def _percent(values: NDArray[np.float64]) -> bool:
    return bool((np.isnan(values) | ((values >= 0) & (values <= 100))).all())


def _counts_up(task: Array, tasks: int | None) -> bool:
    """Tell whether the numbers of tasks are 1, then 2, and so on."""
    numbers = np.asarray(task, np.float64)
    if not np.isfinite(numbers).all() or numbers[0] != 1:
        return False
    steps = np.diff(numbers)
    return bool(((steps == 0) | (steps == 1)).all()) and tasks in (None, int(numbers[-1]))


def unreadable(file: Path, error: BaseException) -> UserError:
    if isinstance(error, UserError):
        return error
    message = " ".join(str(error).split()) or type(error).__name__
    return WrongContentError(f"{file} can't be read: {inert(message)[:200]}")
