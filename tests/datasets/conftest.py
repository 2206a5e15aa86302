"""Fixtures for the dataset tests: a cache of their own, small datasets, servers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from helpers import publishers, servers
from helpers.image_fixtures import missing

from twofold.datasets import Dataset, get, load
from twofold.datasets.cache import root
from twofold.datasets.library import sources
from twofold.errors import UserError


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TWOFOLD_CACHE", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)  # half a gigabyte, where the data is real


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset $TWOFOLD_DATA."""
    monkeypatch.delenv("TWOFOLD_DATA", raising=False)


@pytest.fixture(scope="session")
def mini_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mini-ImageNet with 100 classes of 6 images; not to be changed."""
    folder = tmp_path_factory.mktemp("mini")
    publishers.write_mini_folder(folder / "mini-imagenet", per_class=6)
    return folder


@pytest.fixture
def serve() -> Iterator[Callable[..., servers.Server]]:
    """Start loopback servers that stop with the test."""
    running: list[servers.Server] = []

    def start(files: dict[str, bytes], behaviour: str = "ranges") -> servers.Server:
        running.append(servers.Server(files, behaviour))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def real_folder(data_folder: Path | None) -> Path:
    """The folder of real images, which may be the user's cache: these tests have their own."""
    if data_folder is None:
        with suppress(UserError):
            get("mnist")
    return data_folder or root()


@pytest.fixture(scope="session")
def shared_cache() -> Path:
    """Return the folder with decoded real images, which tests share: decoding is slow."""
    return root()


@pytest.fixture
def real_dataset(
    real_folder: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Dataset]:
    """`real_dataset("mnist")`: the published images, loaded twice, the second time quickly."""
    monkeypatch.setenv("TWOFOLD_CACHE", str(shared_cache))

    def real_dataset(name: str) -> Dataset:
        if sources()[name].find(real_folder) is None:
            pytest.skip(missing(name))
        dataset = load(name, real_folder)
        start = time.process_time()  # whatever else the machine does is not measured
        load(name, real_folder)
        assert time.process_time() - start < 1.0
        return dataset

    return real_dataset
