"""Data files of strangers: answered in one line, without filling the memory and without waiting."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import publishers
from helpers.servers import Serve
from PIL import Image

from twofold.datasets import cifar100, fetch, load, mini_imagenet, mnist, unpickle
from twofold.errors import UserError

LIMIT = 10**6  # bytes, in place of the limits for real data


def refused(message: str, call: Callable[[], object], seconds: float = 30) -> None:
    """Require a UserError of one line within some time."""
    output: list[str] = []

    def work() -> None:
        try:
            call()
        except UserError as error:
            output.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert output, "no answer, or a different error"
    assert message in output[0]
    assert "\n" not in output[0]


def test_gzip_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "LARGEST", LIMIT)
    name = "train-images-idx3-ubyte.gz"
    bomb = gzip.compress(bytes(10 * LIMIT))
    publishers.write(tmp_path, {**publishers.mnist_files(), name: bomb})
    refused(f"{name}: unpacks to more than", lambda: load("mnist", tmp_path))


@pytest.mark.parametrize("kind", ["member", "skipped", "header"])
def test_an_archive_that_unpacks_to_too_much(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar100, "LARGEST", LIMIT)
    member = tarfile.TarInfo("cifar-100-python/train" if kind == "member" else "other")
    member.size = 10 * LIMIT
    if kind == "header":
        member.type = tarfile.XHDTYPE
    archive = gzip.compress(member.tobuf() + bytes(member.size))
    publishers.write(tmp_path, {cifar100.ARCHIVE: archive})
    refused("unpacks to more than", lambda: load("cifar100", tmp_path))


@pytest.mark.parametrize(
    "header",
    [b"11 GNU.sparse.size=x\n", b"30 GNU.sparse.map=1,2,x,yyyyyy\n", b"20 size=abcdefghij\n"],
)
def test_an_odd_pax_header(header: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(header)
    follows = tarfile.TarInfo("cifar-100-python/train")
    blocks = info.tobuf() + header.ljust(512, b"\0") + follows.tobuf() + bytes(1024)
    publishers.write(tmp_path, {cifar100.ARCHIVE: gzip.compress(blocks)})
    refused(cifar100.ARCHIVE, lambda: load("cifar100", tmp_path))


def nested(levels: int) -> list[Any]:
    """A list whose pickle is short: every level holds the one below twice."""
    value: list[Any] = [1]
    for _ in range(levels):
        value = [value, value]
    return value


def test_a_nested_pickle_ends() -> None:
    content = unpickle.read(io.BytesIO(pickle.dumps({"a": nested(60)})), "file", ("a",))
    refused("expected a list of whole numbers", lambda: unpickle.integers(content["a"], "file"))
    refused("expected an array of numbers", lambda: unpickle.array(content["a"], "file"))


@pytest.mark.parametrize("data", [[[1, 2], [3]], nested(60), "text", {}, None])
def test_data_that_is_no_array(data: object, tmp_path: Path) -> None:
    contents = publishers.cifar_contents()
    contents["train"]["data"] = data
    publishers.write(tmp_path, publishers.cifar_files(contents))
    refused("train: data: expected an array of numbers", lambda: load("cifar100", tmp_path))
    minis = publishers.mini_pickles(per_class=6)
    minis["val"]["image_data"] = data
    publishers.write_mini_pickles(tmp_path / "mini", minis, 2)
    refused("image_data: expected an array", lambda: load("mini-imagenet", tmp_path / "mini"))


def test_an_image_in_training_and_test_set(tmp_path: Path) -> None:
    contents = publishers.mini_pickles(per_class=6)
    rows = next(iter(contents["val"]["class_dict"].values()))
    rows[-1] = rows[0]
    publishers.write_mini_pickles(tmp_path, contents, 2)
    refused("names image 0 twice", lambda: load("mini-imagenet", tmp_path))


def test_an_image_in_two_classes(tmp_path: Path) -> None:
    contents = publishers.mini_pickles(per_class=6)
    first, second, *_ = contents["val"]["class_dict"].values()
    second[0] = first[0]
    publishers.write_mini_pickles(tmp_path, contents, 2)
    refused("twice", lambda: load("mini-imagenet", tmp_path))


def test_an_image_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "image.jpg")
    refused("not a plain file", lambda: mini_imagenet._read_image(tmp_path / "image.jpg"))


def test_an_image_of_too_many_pixels(tmp_path: Path) -> None:
    Image.new("L", (20_000, 5)).save(tmp_path / "image.png")
    refused("20000x5 pixels", lambda: mini_imagenet._read_image(tmp_path / "image.png"))


@pytest.mark.parametrize("states", [True, False])
def test_a_download_of_too_much(
    states: bool, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the server states the length, or sends without end."""
    monkeypatch.setattr(fetch, "LARGEST", LIMIT)
    server = serve({"file": bytes(2 * LIMIT)}, "ranges" if states else "endless")
    target = tmp_path / "file"
    refused("more than 1 MB", lambda: fetch.download([server.url + "file"], target, ""))
    assert not fetch.part_of(target).exists() or fetch.part_of(target).stat().st_size <= LIMIT


def test_a_download_that_takes_too_long(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "LONGEST", 0.2)
    server = serve({"file": b""}, "drip")
    url, target = server.url + "file", tmp_path / "file"
    refused("took longer than", lambda: fetch.download([url], target, ""), seconds=10)
    assert np.all(np.frombuffer(fetch.part_of(target).read_bytes(), np.uint8) == 0)
