"""Small datasets in the publishers' formats, written without the package's own code."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

MNIST_PARTS = {"train": 30, "t10k": 10}


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def mnist_files(seed: int = 0) -> dict[str, bytes]:
    random = np.random.default_rng(seed)
    files = {}
    for part, count in MNIST_PARTS.items():
        images = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = random.integers(0, 10, count, dtype=np.uint8)
        files[f"{part}-images-idx3-ubyte.gz"] = gzip.compress(idx(images))
        files[f"{part}-labels-idx1-ubyte.gz"] = gzip.compress(idx(labels))
    return files


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


class Python2Pickler(pickle._Pickler):
    """Writes all strings as Python 2 did, which is how CIFAR-100 was published."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)

    def save_string(self, value: str | bytes) -> None:
        raw = value.encode("latin1") if isinstance(value, str) else value
        short = len(raw) < 256
        length = struct.pack("<B" if short else "<i", len(raw))
        self.write((b"U" if short else b"T") + length + raw)
        self.memoize(value)

    dispatch[str] = save_string
    dispatch[bytes] = save_string


def python2(value: object) -> bytes:
    stream = io.BytesIO()
    Python2Pickler(stream, 2).dump(value)
    return stream.getvalue()


def cifar_contents(train: int = 40, test: int = 20) -> dict[str, dict[str, Any]]:
    random = np.random.default_rng(0)
    contents: dict[str, dict[str, Any]] = {
        part: {
            "filenames": [f"{number}.png" for number in range(count)],
            "fine_labels": random.integers(0, 100, count).tolist(),
            "coarse_labels": random.integers(0, 20, count).tolist(),
            "data": random.integers(0, 256, (count, 3072), dtype=np.uint8),
        }
        for part, count in (("train", train), ("test", test))
    }
    contents["meta"] = {"fine_label_names": [f"class {number}" for number in range(100)]}
    return contents


def balanced_cifar_contents(train: int = 5, test: int = 2) -> dict[str, dict[str, Any]]:
    """Return as many images of each class, in a random order; a super-class has five classes."""
    contents = cifar_contents(100 * train, 100 * test)
    for part in ("train", "test"):
        count = len(contents[part]["fine_labels"])
        fine = np.random.default_rng(1).permutation(count) % 100
        contents[part]["fine_labels"] = fine.tolist()
        contents[part]["coarse_labels"] = (fine * 7 % 20).tolist()
    return contents


def cifar_files(contents: dict[str, dict[str, Any]] | None = None) -> dict[str, bytes]:
    return {name: python2(value) for name, value in (contents or cifar_contents()).items()}


def tar_gz(members: list[tuple[tarfile.TarInfo | str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for member, content in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def cifar_archive(files: dict[str, bytes] | None = None) -> bytes:
    files = files or cifar_files()
    return tar_gz([(f"cifar-100-python/{name}", content) for name, content in files.items()])


def mini_parts() -> dict[str, list[str]]:
    """100 class names in the published proportions, dealt out of order."""
    wnids = [f"n{number:08d}" for number in range(100)]
    shuffled = [wnids[i] for i in np.random.default_rng(0).permutation(100)]
    return {"train": shuffled[:64], "val": shuffled[64:80], "test": shuffled[80:]}


def mini_value(wnid: str, number: int) -> int:
    """The grey of an image, which tells which image it is."""
    return (int(wnid[1:]) * 2 + number * 5) % 256


def write_mini_folder(folder: Path, per_class: int, side: int = 84) -> None:
    (folder / "images").mkdir(parents=True)
    for part, wnids in mini_parts().items():
        rows = ["filename,label"]
        for wnid in wnids:
            # Listed backwards: the order that counts is that of the file names.
            for number in reversed(range(per_class)):
                name = f"{wnid}{number:08d}.jpg"
                grey = mini_value(wnid, number)
                image = Image.new("RGB", (side, side), (grey, grey, grey))
                image.save(folder / "images" / name, quality=95)
                rows.append(f"{name},{wnid}")
        (folder / f"{part}.csv").write_text("\n".join(rows) + "\n")


def mini_pickles(per_class: int) -> dict[str, dict[str, Any]]:
    contents = {}
    for part, wnids in mini_parts().items():
        images, indices = [], {}
        for wnid in wnids:
            indices[wnid] = list(range(len(images), len(images) + per_class))
            images += [
                np.full((84, 84, 3), mini_value(wnid, n), np.uint8) for n in range(per_class)
            ]
        contents[part] = {"image_data": np.stack(images), "class_dict": indices}
    return contents


def write_mini_pickles(folder: Path, contents: dict[str, dict[str, Any]], protocol: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, content in contents.items():
        path = folder / f"mini-imagenet-cache-{part}.pkl"
        raw = python2(content) if protocol == 2 else pickle.dumps(content, protocol)
        path.write_bytes(raw)


def write_small_cifar(folder: Path) -> None:
    write(folder / "cifar-100-python", cifar_files(balanced_cifar_contents()))


def write_small_mini(folder: Path) -> None:
    write_mini_pickles(folder, mini_pickles(per_class=6), protocol=4)


def write_small_mnist(folder: Path) -> None:
    write(folder / "MNIST" / "raw", mnist_files())


WRITERS = {
    "cifar100": write_small_cifar,
    "mini-imagenet": write_small_mini,
    "mnist": write_small_mnist,
}
