"""Checksums of a run's files: written with the run, and compared before it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twofold.errors import UserError
from twofold.experiments.archive import CHECKSUMS, CURVES
from twofold.experiments.columns import LARGEST
from twofold.experiments.files import digest
from twofold.experiments.plain import (
    LARGEST_JSON,
    NO_FILE,
    WrongContentError,
    read_bytes,
    read_json,
    write_json,
)
from twofold.experiments.reader import CONFIG, SUMMARY
from twofold.experiments.weights import LARGEST as LARGEST_WEIGHTS
from twofold.experiments.weights import written

FILES = (CONFIG, SUMMARY, CURVES)
LIMITS = {CONFIG: LARGEST_JSON, SUMMARY: LARGEST_JSON, CURVES: LARGEST}  # bytes


class DamagedRunError(Exception):
    """A run folder whose contents differ from what was written."""


def write_checksums(folder: Path) -> None:
    """Write the checksums of a run's files beside them."""
    sums = {name: digest(folder / name) for name in (*FILES, *written(folder))}
    write_json(folder / CHECKSUMS, sums)


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the contents of a run's files by name, each read once, with the checksums compared."""
    with _reading(folder):
        sums = read_json(folder / CHECKSUMS)
        contents = {name: read_bytes(folder / name, LIMITS[name]) for name in FILES}
        for name, content in contents.items():
            _compare(name, hashlib.sha256(content).hexdigest(), sums)
    return contents


def check(folder: Path, names: Iterable[str] | None = None) -> None:
    """Compare files of a run with their checksums; without `names`, all files of the run."""
    with _reading(folder):
        sums = read_json(folder / CHECKSUMS)
        if names is None:
            weights = {name for name in sums if name not in FILES}
            names = (*FILES, *sorted(weights & {*written(folder)}))
            for missing in sorted(weights - {*names}):
                raise DamagedRunError(f"{missing} is missing")
        for name in names:
            if (folder / name).lstat().st_size > LIMITS.get(name, LARGEST_WEIGHTS):
                raise DamagedRunError(f"{name} is too large")  # to read it would take hours
            _compare(name, digest(folder / name), sums)


def _compare(name: str, found: str, sums: Mapping[str, Any]) -> None:
    if found != sums[name]:
        raise DamagedRunError(f"{name} is damaged")


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Tell damage from errors of the machine."""
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedRunError(f"{Path(error.filename).name} is missing") from None
    except OSError as error:
        if error.errno in NO_FILE:
            raise DamagedRunError(f"{Path(error.filename).name} is no plain file") from None
        # The machine failed, and the files may be sound.
        raise UserError(f"can't read {folder}: {error.strerror or error}") from error
    except WrongContentError as error:
        raise DamagedRunError(str(error)) from None
    except (LookupError, TypeError, AttributeError):
        raise DamagedRunError(f"{CHECKSUMS} is damaged") from None
