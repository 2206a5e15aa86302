"""Decoded datasets on disk, as arrays that are mapped into memory and checked at every load.

An entry is the folder `<cache>/decoded/<name>-<fingerprint of the source>`, with one .npy file per
array and a manifest. A damaged entry is replaced by decoding the source again.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from twofold.datasets.dataset import Copy, Dataset, Split
from twofold.errors import UserError
from twofold.locks import locked

FORMAT = 2
MANIFEST = "manifest.json"


def root() -> Path:
    """Return the cache folder: `$TWOFOLD_CACHE`, or else ~/.cache/twofold."""
    return Path(os.environ.get("TWOFOLD_CACHE") or "~/.cache/twofold").expanduser()


def unwritable(error: OSError) -> UserError:
    return UserError(
        f"cannot write to the cache folder {root()} ({error.strerror or error}): "
        "set $TWOFOLD_CACHE to a folder that can be written"
    )


def load(name: str, copy: Copy, decode: Callable[[], Dataset]) -> Dataset:
    """Return the dataset of a copy. `decode` is called only if the cache has no sound entry."""
    entry = root() / "decoded" / f"{name}-{_fingerprint(copy.files)}"
    dataset = _read(entry)
    if dataset is not None:
        return dataset
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with locked(_beside(entry, "lock")):
            dataset = _read(entry)  # a different process may have decoded it meanwhile
            if dataset is None:
                reason = ": the decoded copy is damaged" if entry.exists() else ""
                print(f"decoding {name} from {copy.where}{reason}", file=sys.stderr)
                _write(entry, decode())
                dataset = _read(entry)
    except OSError as error:
        raise unwritable(error) from error
    if dataset is None:
        raise unwritable(OSError("what was written reads back differently"))
    return dataset


def _beside(entry: Path, suffix: str) -> Path:
    return entry.with_name(f"{entry.name}.{suffix}")


def _fingerprint(files: tuple[Path, ...]) -> str:
    """Return a digest of the files' names, sizes and times.

    The size of a folder is the number of its files: reading 60,000 images would take long.
    """
    facts = []
    for path in files:
        extent = len(os.listdir(path)) if path.is_dir() else path.stat().st_size  # noqa: PTH208
        facts.append((path.name, extent, path.stat().st_mtime_ns))
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _crc_of_file(path: Path) -> int:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return zlib.crc32(data)


def _crc_of_facts(facts: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def _write(entry: Path, dataset: Dataset) -> None:
    """Write an entry under a temporary name and rename it. The caller holds the entry's lock."""
    unfinished = _beside(entry, "tmp")
    shutil.rmtree(unfinished, ignore_errors=True)  # left by a process that was killed
    unfinished.mkdir()
    try:
        arrays = {}
        for part, split in (("train", dataset.train), ("test", dataset.test)):
            for kind in ("images", "labels", "coarse"):
                array = getattr(split, kind)
                if array is not None:
                    path = unfinished / f"{part}-{kind}.npy"
                    np.save(path, array)
                    arrays[path.stem] = {"shape": list(array.shape), "crc32": _crc_of_file(path)}
        facts = {
            "name": dataset.name,
            "class_names": list(dataset.class_names),
            "arrays": arrays,
            "statistics": dataset.statistics,  # they take longer to compute than all else
        }
        manifest = {"format": FORMAT, "crc32": _crc_of_facts(facts), "facts": facts}
        (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=1))
        shutil.rmtree(entry, ignore_errors=True)
        unfinished.rename(entry)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _read(entry: Path) -> Dataset | None:
    """Return an entry, mapped read-only; None if it is missing, damaged or of another format."""
    try:
        manifest = json.loads((entry / MANIFEST).read_text())
        facts = manifest["facts"]
        if manifest["format"] != FORMAT or manifest["crc32"] != _crc_of_facts(facts):
            return None
        arrays = {name: _map(entry, name, about) for name, about in facts["arrays"].items()}
        train, test = (
            Split(arrays[f"{p}-images"], arrays[f"{p}-labels"], arrays.get(f"{p}-coarse"))
            for p in ("train", "test")
        )
        contents = json.dumps([facts["class_names"], facts["arrays"]], sort_keys=True)
        version = hashlib.sha256(contents.encode()).hexdigest()[:10]
        dataset = Dataset(facts["name"], train, test, tuple(facts["class_names"]), version)
        mean, deviation = map(tuple, facts["statistics"])
        vars(dataset)["statistics"] = mean, deviation  # in place of the computed ones
        return dataset
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _map(entry: Path, name: str, about: dict[str, Any]) -> Any:
    path = entry / f"{name}.npy"
    if _crc_of_file(path) != about["crc32"]:
        raise ValueError(f"{path} is damaged")
    # A plain view of the mapping, since slices of np.memmap are slower and keep its type.
    array = np.asarray(np.load(path, mmap_mode="r"))
    if list(array.shape) != about["shape"]:
        raise ValueError(f"{path} has another shape")
    return array
