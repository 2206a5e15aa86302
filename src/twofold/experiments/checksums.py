"""Checksums of a run's files: written with the run, and compared before it is used."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from twofold.errors import UserError
from twofold.experiments.archive import CHECKSUMS, CURVES
from twofold.experiments.files import digest
from twofold.experiments.plain import NO_FILE, WrongContentError, read_json
from twofold.experiments.reader import CONFIG, SUMMARY
from twofold.experiments.weights import written

FILES = (CONFIG, SUMMARY, CURVES)


class DamagedRunError(Exception):
    """A run folder whose contents differ from what was written."""


def write_checksums(folder: Path) -> None:
    """Write the checksums of a run's files beside them."""
    sums = {name: digest(folder / name) for name in (*FILES, *written(folder))}
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=2) + "\n")


def check(folder: Path, names: Iterable[str] | None = None) -> None:
    """Compare files of a run with their checksums; without `names`, all files of the run."""
    try:
        sums = read_json(folder / CHECKSUMS)
        if names is None:
            weights = {name for name in sums if name not in FILES}
            names = (*FILES, *sorted(weights & {*written(folder)}))
            for missing in sorted(weights - {*names}):
                raise DamagedRunError(f"{missing} is missing")
        for name in names:
            if digest(folder / name) != sums[name]:
                raise DamagedRunError(f"{name} is damaged")
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
