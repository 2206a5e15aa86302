"""Archives: all runs of a store in four plain files, small enough to be published.

    ARCHIVE/store.json       its format
    ARCHIVE/runs.jsonl       a line per run, by name: its configuration and summary
    ARCHIVE/curves.parquet   the curves of all runs, with a row group per run and its name
    ARCHIVE/checksums.json   the digests of these files
    ARCHIVE/.next/           new files, whole, while they are moved into place

Runs are added and never removed. The new files are written into a folder under a different name,
which is renamed to `.next`. From then on they are valid, even if moving them is interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twofold.errors import UserError
from twofold.experiments.columns import (
    RUN,
    Array,
    as_columns,
    check_sizes,
    checked,
    unreadable,
)
from twofold.experiments.files import digest, sync, sync_names, writing
from twofold.experiments.plain import WrongContentError, parse, read_json, write_json
from twofold.locks import locked
from twofold.plainfiles import opened

FORMAT, KIND = 2, "archive"
MARK, RUNS, CURVES, CHECKSUMS = "store.json", "runs.jsonl", "curves.parquet", "checksums.json"
NEXT = ".next"
NAMES = b"twofold.runs"  # in the metadata of the Parquet file: the run of each row group
LARGEST_RUNS = 2**30  # bytes
ATTEMPTS = 5  # to read files that a different process is replacing

# The columns that tables, measures, figures and the page read, and how much longer a projection
# made the step (`norm_ratio`). All rows are kept, and no value is rounded.
FIRST = (
    *("iteration", "task", "projected", "norm_ratio"),
    *("old_cosine", "old_direct", "old_predicted", "old_second", "old_change", "old_curvature"),
    "old_statistics",
)
KEPT = re.compile(rf"{'|'.join(FIRST)}|(raw_)?(accuracy|lowest)_\d+")


@dataclass(frozen=True)
class Entry:
    """A run as plain data."""

    name: str  # of its folder, which ends with the identity
    config: dict[str, Any]
    summary: dict[str, Any]
    read: Callable[[], dict[str, Array]]  # its columns

    @property
    def identity(self) -> str:
        return identity_of(self.name)


class Archive:
    """A folder that holds an archive, or is to hold one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        return list(self._lines())

    def entry(self, name: str) -> Entry:
        lines = self._lines()
        if name not in lines:
            raise UserError(f"{self.folder} has no run {name!r}")
        line = parse(lines[name], RUNS)
        for key in ("config", "summary", "curves"):
            if not isinstance(line.get(key), str if key == "curves" else dict):
                raise WrongContentError(f"{RUNS}: {name} has no {key}")
        read = partial(_read_columns, self.folder, name, line["curves"], line["summary"])
        return Entry(name, line["config"], line["summary"], read)

    def add(self, entries: Iterable[Entry]) -> list[str]:
        """Add the runs that the archive does not have yet, and return their names."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with writing(self.folder), locked(self.folder / ".lock"):
            self._finish()
            identities = {identity_of(name) for name in self._there()}
            new: dict[str, Entry] = {}
            for entry in entries:
                if entry.identity not in identities:
                    new.setdefault(entry.identity, entry)
            if new:
                self._write(list(new.values()))
        return sorted(entry.name for entry in new.values())

    def damaged(self, names: Iterable[str]) -> dict[str, str]:
        """Return what is wrong with each damaged run among these."""
        if self._sound():
            return {}
        reasons = {}
        for name in names:
            try:
                self.entry(name).read()
                reasons[name] = f"{CURVES} is not as it was written"
            except UserError as error:
                reasons[name] = str(error)
        return reasons

    def _sound(self) -> bool:
        """Tell whether the file of all curves is undamaged."""
        with _reading(self.folder):
            sums = read_json(_find(self.folder, CHECKSUMS))
            return bool(digest(_find(self.folder, CURVES)) == sums[CURVES])

    def size(self) -> int:
        files = (self.folder / name for name in (MARK, RUNS, CURVES, CHECKSUMS))
        return sum(file.stat().st_size for file in files if file.exists())

    def _there(self) -> list[str]:
        """Return the names of the runs; none if the folder is no archive yet."""
        return self.names() if is_archive(self.folder) else []

    def _lines(self) -> dict[str, str]:
        """Return the lines of `runs.jsonl` by the name of their run."""
        for attempt in range(ATTEMPTS):
            with _reading(self.folder):
                file = _find(self.folder, RUNS)
                try:
                    return _read_lines(self.folder, _stamp(file.stat()))
                except FileNotFoundError:  # it was moved into place meanwhile
                    if attempt == ATTEMPTS - 1:
                        raise
                except _ChangedError:
                    if attempt == ATTEMPTS - 1:
                        break
            time.sleep(0.05)  # runs may have been added between reading the two files
        raise UserError(f"{self.folder / RUNS} is not as it was written: get the archive again")

    def _write(self, new: list[Entry]) -> None:
        unfinished = self.folder / f"{NEXT}-{uuid.uuid4().hex}"
        unfinished.mkdir()
        try:
            old = [self.entry(name) for name in self._there()]
            if old and not self._sound():
                raise UserError(
                    f"{self.folder / CURVES} is not as it was written: nothing is added"
                )
            entries = sorted([*old, *new], key=lambda entry: entry.name)
            digests = _write_curves(unfinished / CURVES, entries)
            with (unfinished / RUNS).open("w", encoding="utf-8") as file:
                for entry in entries:
                    plain = {
                        "run": entry.name,
                        "config": entry.config,
                        "summary": entry.summary,
                        "curves": digests[entry.name],
                    }
                    file.write(json.dumps(plain) + "\n")
            mark = {"format": FORMAT, "kind": KIND}
            (unfinished / MARK).write_text(json.dumps(mark) + "\n")
            sums = {name: digest(unfinished / name) for name in (RUNS, CURVES)}
            write_json(unfinished / CHECKSUMS, sums)
            sync(unfinished)
            unfinished.rename(self.folder / NEXT)
            sync_names(self.folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._finish()

    def _finish(self) -> None:
        """Move the files of an addition into place, and remove the remains of a killed one."""
        successor = self.folder / NEXT
        if successor.is_dir() and not successor.is_symlink():
            for name in (MARK, CURVES, RUNS, CHECKSUMS):
                with contextlib.suppress(FileNotFoundError):
                    (successor / name).replace(self.folder / name)
            sync_names(self.folder)
            successor.rmdir()
        for left in self.folder.glob(f"{NEXT}-*"):
            shutil.rmtree(left, ignore_errors=True)


def identity_of(name: str) -> str:
    """Return the identity, which is the end of a run's name."""
    return name.rpartition("-")[2]


def read_mark(folder: Path) -> dict[str, Any] | None:
    """Return the contents of a store's mark, which states its format; None without a mark."""
    file = folder / MARK
    try:
        file = _find(folder, MARK)
        if not file.exists():
            return None
        mark = read_json(file)
        mark["format"] = int(mark["format"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise UserError(f"{file} can't be read: is {folder} a run store?") from None
    if mark["format"] > FORMAT:
        raise UserError(
            f"{folder} was written by a newer twofold (store format {mark['format']}, this one "
            f"knows {FORMAT}): update twofold, or use another folder"
        )
    return dict(mark)


def is_archive(folder: Path) -> bool:
    mark = read_mark(folder)
    return mark is not None and mark.get("kind") == KIND


def _find(folder: Path, name: str) -> Path:
    """Return the path of a file, which may not have been moved into place yet."""
    candidate = folder / NEXT / name
    linked = (folder / NEXT).is_symlink()  # it may lead anywhere
    return candidate if candidate.exists() and not linked else folder / name


class _ChangedError(Exception):
    pass


@contextlib.contextmanager
def _reading(folder: Path) -> Any:
    try:
        yield
    except OSError as error:
        file = Path(error.filename or folder).name
        raise UserError(f"{folder}: can't read {file}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{folder} is not an archive that can be read: {error!r}") from None


@lru_cache(maxsize=4)
def _read_lines(folder: Path, stamp: tuple[int, int, int]) -> dict[str, str]:
    with opened(_find(folder, RUNS), follow=False) as file:
        if os.fstat(file.fileno()).st_size > LARGEST_RUNS:
            raise WrongContentError(f"{RUNS} is larger than {LARGEST_RUNS:,} bytes")
        content = file.read()
    sums = read_json(_find(folder, CHECKSUMS))
    if hashlib.sha256(content).hexdigest() != sums[RUNS]:
        raise _ChangedError
    lines = content.decode().strip().split("\n")
    return {_name(parse(line, RUNS)): line for line in lines}


def _name(line: Any) -> str:
    name = line.get("run") if isinstance(line, dict) else None
    if not isinstance(name, str) or not name.isprintable() or name != Path(name).name:
        raise WrongContentError(f"{RUNS}: a line has no name of a run")
    return name


@lru_cache(maxsize=2)
def _read_footer(file: Path, stamp: tuple[int, int, int]) -> tuple[Any, dict[str, int]]:
    """Return what describes the file of all curves, and where each run is in it.

    It is as long as the archive, so it is read once and not for every run.
    """
    with opened(file, follow=False) as stream, pq.ParquetFile(stream) as parquet:
        names = parse((parquet.metadata.metadata or {})[NAMES], CURVES)
        return parquet.metadata, {name: place for place, name in enumerate(names)}


def _stamp(state: os.stat_result) -> tuple[int, int, int]:
    """Return what changes if a file does."""
    return state.st_ino, state.st_mtime_ns, state.st_size


def _read_columns(
    folder: Path, name: str, expected: str, summary: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the columns of a run from its row group, without those that are null."""
    file = _find(folder, CURVES)
    try:
        with opened(file, follow=False) as stream:
            footer, places = _read_footer(file, _stamp(os.fstat(stream.fileno())))
            with pq.ParquetFile(stream, metadata=footer) as parquet:
                group = places[name]
                names = check_sizes(parquet.schema_arrow, [footer.row_group(group)], file)
                table = parquet.read_row_group(group, names)
    except (
        *(OSError, ValueError, LookupError, TypeError, AttributeError),
        *(pa.ArrowException, MemoryError),
    ) as error:
        if not file.exists() or isinstance(error, FileNotFoundError):
            raise UserError(f"{folder / CURVES} is missing: get the archive again") from None
        raise unreadable(file, error) from None
    columns = checked(as_columns(table), summary, f"{file}: {name}")
    if _digest(columns) != expected:
        raise UserError(f"{file}: the curves of {name} are not as they were written")
    return columns


def _write_curves(file: Path, entries: list[Entry]) -> dict[str, str]:
    """Write a row group per run, and return the digests of the runs' columns."""
    types: dict[str, pa.DataType] = {}
    for entry in entries:
        for name, column in _kept(entry).items():
            kind = pa.from_numpy_dtype(column.dtype)
            if types.setdefault(name, kind) != kind:
                kinds = f"{types[name]} in other runs and {kind} in {entry.name}"
                raise UserError(f"an archive needs columns of one type: {name!r} is {kinds}")
    names = sorted(types, key=_place)
    schema = pa.schema([(RUN, pa.string()), *((name, types[name]) for name in names)])
    digests = {}
    with pq.ParquetWriter(
        file.absolute(),  # pyarrow takes `lr:0.1/...` for an address
        schema.with_metadata({NAMES: json.dumps([entry.name for entry in entries])}),
        compression="zstd",
        compression_level=15,  # 22 takes three times as long to save 3%
        use_dictionary=[RUN],  # zstd compresses the plain numbers better
        column_encoding={name: "DELTA_BINARY_PACKED" for name in names if name == "iteration"},
        write_statistics=False,
    ) as writer:
        for entry in entries:
            columns = _kept(entry)
            digests[entry.name] = _digest(columns)
            length = len(next(iter(columns.values())))
            arrays = [
                pa.array(columns[name]) if name in columns else pa.nulls(length, types[name])
                for name in names
            ]
            name = pa.array([entry.name]).take(pa.array(np.zeros(length, np.int8)))
            table = pa.table([name, *arrays], schema=schema)
            writer.write_table(table, row_group_size=max(length, 1))
    return digests


def _kept(entry: Entry) -> dict[str, Array]:
    kept = {name: column for name, column in entry.read().items() if KEPT.fullmatch(name)}
    if not kept:
        raise UserError(f"{entry.name} has no curves that could be archived")
    return kept


def _place(name: str) -> tuple[int, str, int]:
    """Return the sorting key of a column: accuracies come last, by task."""
    if name in FIRST:
        return FIRST.index(name), "", 0
    kind, _, task = name.rpartition("_")
    return len(FIRST), kind, int(task)


def _digest(columns: Mapping[str, Array]) -> str:
    """Return a digest of all bits, which does not depend on the order of the columns."""
    sha = hashlib.sha256()
    for name in sorted(columns):
        column = np.ascontiguousarray(columns[name])
        sha.update(f"{name} {column.dtype.str} {column.shape}".encode())
        sha.update(column.data)
    return sha.hexdigest()
