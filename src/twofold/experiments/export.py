"""Runs copied into another store, small enough to be published beside a paper."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from twofold.errors import UserError
from twofold.experiments.runs import CONFIG, CURVES, SUMMARY
from twofold.experiments.store import Store, identity_of

# The columns that tables, measures, figures and the page read, and how long projections made the
# step: all rows, every bit as it was.
SHOWN = re.compile(r"iteration|task|projected|norm_ratio|(raw_)?accuracy_\d+")


def export(folders: Sequence[Path], to: Path) -> tuple[int, int]:
    """Copy runs into the store `to`, but for those it has: how many were new, and their bytes."""
    if any(to.resolve() == folder.parent.resolve() for folder in folders):
        raise UserError(f"{to} is where the runs are: export them to another folder")
    store = Store(to)
    store.prepare()
    new = [folder for folder in folders if store.find_identity(identity_of(folder.name)) is None]
    copies = [_copy(folder, store) for folder in new]
    with contextlib.suppress(OSError):  # unless runs are made there
        (to / ".work").rmdir()
    return len(new), sum(file.stat().st_size for copy in copies for file in copy.iterdir())


def _copy(folder: Path, store: Store) -> Path:
    def write(copy: Path) -> None:
        for name in (CONFIG, SUMMARY):
            shutil.copyfile(folder / name, copy / name)
        _write_small(folder / CURVES, copy / CURVES)

    return store.save_files(folder.name, write)


def _write_small(curves: Path, copy: Path) -> None:
    """Nothing is rounded: zstd alone makes little of accuracies, which are thousandths."""
    columns = [name for name in pq.read_schema(curves).names if SHOWN.fullmatch(name)]
    pq.write_table(
        pq.read_table(curves, columns=columns),
        copy,
        compression="zstd",
        compression_level=22,
        use_dictionary=False,  # zstd does better on the numbers themselves
        column_encoding={"iteration": "DELTA_BINARY_PACKED"},
        write_statistics=False,  # these and the schema once more would be a tenth of the file
        store_schema=False,
    )
