"""CIFAR-100: read as published, refused if damaged, fetched."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import publishers
from helpers.servers import Serve

from twofold.datasets import check, cifar100, get, load
from twofold.datasets.dataset import Copy, Dataset
from twofold.errors import UserError


def found(copy: Copy | None) -> Copy:
    assert copy is not None
    return copy


def is_cifar(dataset: Dataset) -> None:
    contents = publishers.cifar_contents()
    for part, split in (("train", dataset.train), ("test", dataset.test)):
        expected = contents[part]
        assert split.labels.tolist() == expected["fine_labels"]
        assert split.coarse is not None
        assert split.coarse.tolist() == expected["coarse_labels"]
        assert split.coarse.dtype == split.labels.dtype == np.int64
        # The publisher stores 1024 red, 1024 green, 1024 blue values, row by row.
        red_of_second_row = expected["data"][:, 32:64]
        assert np.array_equal(split.images[:, 1, :, 0], red_of_second_row)
        assert np.array_equal(split.images[:, 0, 5, 2], expected["data"][:, 2048 + 5])
    assert dataset.class_names[:2] == ("class 0", "class 1")


@pytest.mark.parametrize("place", ["cifar-100-python", "."])
def test_cifar_folder_is_read(tmp_path: Path, place: str) -> None:
    publishers.write(tmp_path / place, publishers.cifar_files())
    is_cifar(found(cifar100.find(tmp_path)).decode())


def test_cifar_archive_is_read_in_place(tmp_path: Path) -> None:
    publishers.write(tmp_path, {cifar100.ARCHIVE: publishers.cifar_archive()})
    is_cifar(found(cifar100.find(tmp_path)).decode())
    assert [path.name for path in tmp_path.iterdir()] == [cifar100.ARCHIVE]


def test_hostile_archive_does_nothing(tmp_path: Path) -> None:
    files = publishers.cifar_files()
    link = tarfile.TarInfo("cifar-100-python/test")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard = tarfile.TarInfo("cifar-100-python/test")
    hard.type, hard.linkname = tarfile.LNKTYPE, "../../outside"
    device = tarfile.TarInfo("cifar-100-python/test")
    device.type = tarfile.CHRTYPE
    members: list[tuple[tarfile.TarInfo | str, bytes]] = [
        ("../outside", b"x"),
        (str(tmp_path / "outside"), b"x"),
        ("../cifar-100-python/train", b"garbage"),
        ("/cifar-100-python/train", b"garbage"),
        (link, b""),
        (hard, b""),
        (device, b""),
    ]
    good: list[tuple[tarfile.TarInfo | str, bytes]] = [
        (f"cifar-100-python/{name}", content) for name, content in files.items()
    ]
    folder = tmp_path / "data"
    publishers.write(folder, {cifar100.ARCHIVE: publishers.tar_gz(members + good)})
    is_cifar(found(cifar100.find(folder)).decode())
    publishers.write(folder, {cifar100.ARCHIVE: publishers.tar_gz(members)})
    with pytest.raises(UserError, match="lacks the file cifar-100-python/train"):
        found(cifar100.find(folder)).decode()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in folder.iterdir()] == [cifar100.ARCHIVE]


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.95])
def test_cut_short_archive_is_refused(tmp_path: Path, share: float) -> None:
    archive = publishers.cifar_archive()
    cut = archive[: int(share * len(archive))]
    publishers.write(tmp_path, {cifar100.ARCHIVE: cut})
    with pytest.raises(UserError, match=cifar100.ARCHIVE):
        found(cifar100.find(tmp_path)).decode()


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("train", {"data": None}, "expected an array of numbers"),
        ("train", {"data": np.zeros((40, 3071), np.uint8)}, r"\(40, 3071\).*expected uint8"),
        ("train", {"data": np.zeros((39, 3072), np.uint8)}, r"\(39, 3072\).*expected uint8"),
        ("test", {"data": np.zeros((20, 3072), np.float32)}, "float32"),
        ("test", {"fine_labels": ["a"] * 20}, "test: fine_labels: expected a list of whole"),
        ("test", {"coarse_labels": [1] * 19}, "19 coarse labels"),
        ("meta", {"fine_label_names": "apple"}, "not a list of names"),
        ("meta", {"fine_label_names": [1, 2]}, "not a list of names"),
    ],
)
def test_wrong_cifar_is_refused(
    tmp_path: Path, part: str, change: dict[str, Any], message: str
) -> None:
    contents = publishers.cifar_contents()
    contents[part].update(change)
    publishers.write(tmp_path, publishers.cifar_files(contents))
    with pytest.raises(UserError, match=message):
        found(cifar100.find(tmp_path)).decode()


def test_cifar_without_a_key_is_refused(tmp_path: Path) -> None:
    contents = publishers.cifar_contents()
    del contents["test"]["coarse_labels"]
    publishers.write(tmp_path, publishers.cifar_files(contents))
    with pytest.raises(UserError, match="test: lacks 'coarse_labels'"):
        found(cifar100.find(tmp_path)).decode()


def test_other_images_are_not_cifar(tmp_path: Path) -> None:
    publishers.write(tmp_path, publishers.cifar_files())
    with pytest.raises(UserError, match="damaged or not CIFAR-100"):
        check("cifar100", tmp_path)


def test_cifar_is_brought(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = publishers.cifar_archive()
    server = serve({cifar100.ARCHIVE: archive})
    monkeypatch.setattr(cifar100, "URLS", (server.url + cifar100.ARCHIVE,))
    with pytest.raises(UserError, match=r"wrong checksum.* put it into .* by hand"):
        get("cifar100", tmp_path)
    monkeypatch.setattr(cifar100, "ARCHIVE_SHA256", hashlib.sha256(archive).hexdigest())
    assert get("cifar100", tmp_path) == tmp_path / cifar100.ARCHIVE
    with pytest.raises(UserError, match="damaged or not CIFAR-100"):
        load("cifar100", tmp_path)


@pytest.mark.real_data
def test_the_real_images(real_dataset: Callable[[str], Dataset], real_folder: Path) -> None:
    dataset = real_dataset("cifar100")
    train, test = dataset.train, dataset.test
    assert train.images.shape == (50_000, 32, 32, 3)
    assert np.bincount(train.labels).tolist() == [500] * 100
    assert np.bincount(test.labels).tolist() == [100] * 100
    assert train.coarse is not None
    assert len(set(zip(train.labels.tolist(), train.coarse.tolist(), strict=True))) == 100
    assert (train.images.mean((0, 1, 2)) / 255).round(4).tolist() == [0.5071, 0.4865, 0.4409]
    assert dataset.class_names[0] == "apple"
    assert "digest as published" in check("cifar100", real_folder)
