"""`twofold data`, and data that is missing, damaged, something else or dangerous."""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commandline import Command, nothing_in, wrong


def test_data_check_and_get(twofold: Command, toy: Path) -> None:
    result = twofold("data", "check", "mini-imagenet", "--data", toy)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("mini-imagenet: 500 + 100 images of 84x84x3, 100 classes")
    assert result.out.endswith(f"from {toy}\n")
    result = twofold("data", "get", "mini-imagenet", "--data", toy)
    assert (result.code, result.out) == (0, f"mini-imagenet is in {toy}\n")


def idx(*shape: int) -> bytes:
    header = struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape)
    return gzip.compress(header + bytes(int(np.prod(shape))))


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """What looks like MNIST: files of its names and format."""
    folder = tmp_path / "data" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for part, count in (("train", 30), ("t10k", 10)):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(count, 28, 28))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(count))
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, because other tests decode images into the shared one."""
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))


def refused(twofold: Command, folder: Path, benchmark: str, *named: str) -> None:
    """By `run` and by `data check`, and neither leaves anything."""
    dataset = {"rotated-mnist": "mnist", "split-cifar100": "cifar100"}.get(benchmark, "")
    out = folder.parent / "out"
    wrong(twofold("run", benchmark, "er", "--data", folder, "--out", out), *named)
    wrong(twofold("data", "check", dataset or "mini-imagenet", "--data", folder), *named)
    assert nothing_in(out)
    decoded = Path(os.environ["TWOFOLD_CACHE"]) / "decoded"
    assert [*decoded.glob("*.tmp"), *decoded.glob("*.lock")] == []


def test_a_data_folder_that_is_missing(twofold: Command, tmp_path: Path) -> None:
    refused(twofold, tmp_path / "nowhere", "rotated-mnist", "nowhere", "not a folder", "MNIST")


def test_a_data_folder_with_something_else(twofold: Command, tmp_path: Path, toy: Path) -> None:
    shutil.copytree(toy, tmp_path / "toy")
    refused(twofold, tmp_path / "toy", "rotated-mnist", "toy", "train-images-idx3-ubyte.gz")
    refused(twofold, tmp_path / "toy", "split-cifar100", "toy", "cifar-100-python")


def test_a_data_folder_that_is_a_file(twofold: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    refused(twofold, tmp_path / "file", "rotated-mnist", "file", "not a folder")


def test_data_cut_short(twofold: Command, mnist: Path) -> None:
    file = mnist / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-20])
    refused(twofold, mnist.parents[1], "rotated-mnist", str(file), "cut short")


def test_data_that_is_damaged(twofold: Command, mnist: Path) -> None:
    file = mnist / "t10k-labels-idx1-ubyte.gz"
    file.write_bytes(b"<html>404</html>")
    refused(twofold, mnist.parents[1], "rotated-mnist", str(file), "damaged")


def test_data_that_is_not_what_was_published(twofold: Command, mnist: Path) -> None:
    folder = mnist.parents[1]
    refused(twofold, folder, "rotated-mnist", "not MNIST", str(mnist), "data get mnist")


def test_an_empty_file(twofold: Command, mnist: Path) -> None:
    (mnist / "t10k-labels-idx1-ubyte.gz").write_bytes(b"")
    refused(twofold, mnist.parents[1], "rotated-mnist", "t10k-labels-idx1-ubyte.gz")


class Bomb:
    """Unpickled in good faith, it creates a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.file), "w")


def test_a_pickle_that_runs_code(twofold: Command, tmp_path: Path, toy: Path) -> None:
    bang = tmp_path / "bang"
    bomb = pickle.dumps({"data": Bomb(bang), "image_data": Bomb(bang), "class_dict": {}})
    pickle.loads(bomb)
    assert bang.exists()  # it does work
    bang.unlink()
    cifar = tmp_path / "data" / "cifar-100-python"
    cifar.mkdir(parents=True)
    for name in ("train", "test", "meta"):
        (cifar / name).write_bytes(bomb)
    refused(twofold, cifar.parent, "split-cifar100", str(cifar), "open", "refused")
    mini = tmp_path / "mini"
    shutil.copytree(toy, mini)
    (mini / "mini-imagenet-cache-val.pkl").write_bytes(bomb)
    refused(twofold, mini, "split-mini-imagenet", "mini-imagenet-cache-val.pkl", "refused")
    assert not bang.exists()


def test_a_pickle_cut_short(twofold: Command, tmp_path: Path, toy: Path) -> None:
    mini = tmp_path / "mini"
    shutil.copytree(toy, mini)
    file = mini / "mini-imagenet-cache-test.pkl"
    file.write_bytes(file.read_bytes()[:1000])
    refused(twofold, mini, "split-mini-imagenet", str(file))
