"""Files of curves that other programs have written: tables, and TensorBoard's event files.

They may come from a stranger, so they are opened only if they are plain files of a bounded size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from twofold.errors import UserError
from twofold.experiments.columns import LARGEST
from twofold.extras import need
from twofold.plainfiles import opened

if TYPE_CHECKING:
    import pandas as pd

LISTED = 20  # columns that a message names


def read_table(file: Path) -> pd.DataFrame:
    """Read a CSV, TSV or Parquet table: columns of numbers and texts, each with its own name."""
    with _opened(file) as stream:
        table = (
            _read_parquet(file, stream) if file.suffix == ".parquet" else _read_csv(file, stream)
        )
    if table.empty:
        raise UserError(f"{file} has no rows")
    table = table.rename(columns=lambda name: str(name).strip())
    if not table.columns.is_unique:
        raise UserError(f"{file}: two columns have the same name (there are {listed(table)})")
    for name in table.columns:
        if not _is_plain(table[name]):
            raise UserError(f"{file}: the column {name!r} must hold numbers or text")
    return table


def read_events(file: Path) -> pd.DataFrame:
    """Return TensorBoard's scalars as a wide table: a row per step, a column per tag."""
    import pandas as pd

    need("tensorboard", "reading event files")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    if not file.exists():
        raise UserError(f"there is no {file}")
    parts = (
        [each for each in file.iterdir() if "tfevents" in each.name] if file.is_dir() else [file]
    )
    for part in parts:
        with _opened(part):
            pass
    events = EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
    tags = events.Tags()["scalars"]
    if not tags:
        raise UserError(f"{file} has no scalars that TensorBoard can read")
    series = {}
    for tag in tags:
        values = {event.step: event.value for event in events.Scalars(tag)}  # the last one counts
        series[tag] = pd.Series(values, dtype=float)
    table = pd.DataFrame(series).sort_index()
    table.insert(0, "iteration", table.index)
    return table.reset_index(drop=True)


def listed(table: pd.DataFrame) -> str:
    """Return the names of the columns, or the first of many."""
    more = ", ..." if len(table.columns) > LISTED else ""
    return ", ".join(map(str, table.columns[:LISTED])) + more


@contextmanager
def _opened(file: Path) -> Iterator[BufferedReader]:
    """Open a plain file, and turn all that can go wrong with its contents into a line."""
    try:
        with opened(file) as stream:
            check_bytes(file, os.fstat(stream.fileno()).st_size)
            yield stream
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"can't read {file}: {error.strerror or error}") from None
    except Exception as error:  # pandas raises many kinds
        message = (str(error).strip().splitlines() or [""])[0]
        raise UserError(f"{file} is not a table that can be read: {message}") from None


def check_bytes(file: Path, count: int) -> None:
    """Refuse what would take too much memory."""
    if count > LARGEST:
        raise UserError(f"{file} is too large: its curves would take {count / 1e6:,.0f} MB")


def _read_csv(file: Path, stream: BufferedReader) -> pd.DataFrame:
    import pandas as pd

    table = pd.read_csv(stream, sep="\t" if file.suffix == ".tsv" else ",", comment="#")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes the first ones for names of rows
        raise UserError(f"{file}: a row has more values than there are columns ({listed(table)})")
    return table


def _read_parquet(file: Path, stream: BufferedReader) -> pd.DataFrame:
    import pyarrow.parquet as pq

    with pq.ParquetFile(stream) as parquet:
        described = parquet.metadata
        groups = (described.row_group(k).total_byte_size for k in range(described.num_row_groups))
        check_bytes(file, max(sum(groups), 8 * described.num_rows * described.num_columns))
        table: pd.DataFrame = parquet.read().to_pandas()
    return table


def _is_plain(column: pd.Series) -> bool:
    import pandas as pd

    return column.dtype != object or bool(column.map(pd.api.types.is_scalar).all())
