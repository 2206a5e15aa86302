"""CIFAR-100: 60,000 colour images in 100 classes and 20 super-classes (Krizhevsky 2009)."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from twofold.datasets import fetch, unpickle
from twofold.datasets.dataset import Copy, Dataset, Source, Split
from twofold.errors import UserError

URLS = ("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",)
ARCHIVE = "cifar-100-python.tar.gz"
ARCHIVE_SHA256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
DIGEST = "89526a691bde22a64dc9334570311a7ab0f544b74818fe0829f1b63bafbf8519"
LARGEST = 10**9  # bytes of the unpacked archive; the published one has 186 million
KEYS = {
    "train": ("data", "fine_labels", "coarse_labels"),
    "test": ("data", "fine_labels", "coarse_labels"),
    "meta": ("fine_label_names",),
}


def find(folder: Path) -> Copy | None:
    for place in (folder / "cifar-100-python", folder):
        files = tuple(place / name for name in KEYS)
        if all(file.is_file() for file in files):
            return Copy(place, files, partial(decode_folder, place))
    archive = folder / ARCHIVE
    if archive.is_file():
        return Copy(archive, (archive,), partial(decode_archive, archive))
    return None


def decode_folder(place: Path) -> Dataset:
    contents = {}
    for name, keys in KEYS.items():
        with (place / name).open("rb") as stream:
            contents[name] = unpickle.read(stream, str(place / name), keys)
    return _dataset(contents, place)


def decode_archive(archive: Path) -> Dataset:
    """Read regular members with the expected names from the archive, without extracting it."""
    contents: dict[str, dict[str, Any]] = {}
    size = 0
    try:
        with _Limited(archive) as unpacked, tarfile.open(fileobj=unpacked, mode="r:") as tar:
            for member in tar:
                size += member.size
                unpacked.check(size)
                folder, _, name = member.name.rpartition("/")
                if folder == "cifar-100-python" and name in KEYS and member.isreg():
                    stream = tar.extractfile(member)
                    assert stream is not None  # it is a regular member
                    contents[name] = unpickle.read(stream, f"{archive}: {name}", KEYS[name])
    except (UserError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # tarfile raises many kinds of error on damaged headers
        why = " ".join(str(error).split())
        raise UserError(f"{archive}: cut short or damaged ({why})") from error
    for name in KEYS:
        if name not in contents:
            raise UserError(f"{archive}: lacks the file cifar-100-python/{name}")
    return _dataset(contents, archive)


class _Limited(gzip.GzipFile):
    """The bytes of a packed archive, of which no more than a limit are held at once."""

    def read(self, size: int | None = -1) -> bytes:
        self.check(size or 0)
        return super().read(size)

    def check(self, size: int) -> None:
        if size > LARGEST:
            raise UserError(f"{self.name}: unpacks to more than {LARGEST / 1e6:,.0f} MB")


def _dataset(contents: Mapping[str, Mapping[str, Any]], where: Path) -> Dataset:
    names = contents["meta"]["fine_label_names"]
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise UserError(f"{where}: fine_label_names of meta is not a list of names")
    train, test = (_split(contents[part], f"{where}: {part}") for part in ("train", "test"))
    return Dataset("cifar100", train, test, tuple(unpickle.text(name) for name in names))


def _split(content: Mapping[str, Any], where: str) -> Split:
    data = unpickle.array(content["data"], f"{where}: data")
    fine = unpickle.integers(content["fine_labels"], f"{where}: fine_labels")
    coarse = unpickle.integers(content["coarse_labels"], f"{where}: coarse_labels")
    if data.dtype != np.uint8 or data.shape != (len(fine), 3072) or len(fine) != len(coarse):
        raise UserError(
            f"{where}: data is {data.dtype} {data.shape} for {len(fine)} fine and "
            f"{len(coarse)} coarse labels, expected uint8 ({len(fine)}, 3072)"
        )
    planes = data.reshape(-1, 3, 32, 32)
    return Split(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), fine, coarse)


def obtain(folder: Path) -> None:
    try:
        fetch.download(URLS, folder / ARCHIVE, ARCHIVE_SHA256)
    except UserError as error:
        raise UserError(f"{error}; without a network put it into {folder} by hand") from error


SOURCE = Source(
    name="cifar100",
    title="CIFAR-100",
    files=f"train, test and meta in cifar-100-python or in the folder itself, or {ARCHIVE}",
    find=find,
    fetch=obtain,
    digest=DIGEST,
)
