"""Fixtures for tests that read images: the published ones, or small ones in the same formats."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import publishers
from twofold import datasets
from twofold.datasets.dataset import digest
from twofold.datasets.library import sources
from twofold.errors import UserError

Folder = Callable[[str], Path | None]


@pytest.fixture(scope="session")
def data_folder() -> Path | None:
    """Return $TWOFOLD_DATA, or None, with which `load` finds or fetches real images."""
    return Path(os.environ["TWOFOLD_DATA"]) if "TWOFOLD_DATA" in os.environ else None


@pytest.fixture(scope="session")
def unavailable() -> dict[str, str]:
    """Datasets that were looked for in vain, with the error; the search can take long."""
    return {}


@pytest.fixture
def need(data_folder: Path | None, unavailable: dict[str, str]) -> Folder:
    """`need("cifar100")`: the folder of the published images; skip if they are not available."""

    def need(name: str) -> Path | None:
        if name not in unavailable:
            try:
                datasets.load(name, data_folder)
            except UserError as error:
                unavailable[name] = str(error)
        if name in unavailable:
            print(unavailable[name])
            pytest.skip(missing(name))
        return data_folder

    return need


def missing(name: str) -> str:
    """Return the reason of a skip: what was not tested, and what enables it."""
    return f"on real {sources()[name].title} (set TWOFOLD_DATA, see docs/data.md)"


@pytest.fixture
def small_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """`small_images("cifar100")`: a folder with a few images that pass for the published ones."""

    def small_images(name: str) -> Path:
        folder = tmp_path / "small"
        publishers.WRITERS[name](folder)
        source = sources()[name]
        copy = source.find(folder)
        assert copy is not None
        if source.digest is not None:
            of_these = dataclasses.replace(source, digest=digest(copy.decode()))
            monkeypatch.setitem(sources(), name, of_these)
        monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
        return folder

    return small_images


@pytest.fixture(
    params=["small_images", pytest.param("need", marks=pytest.mark.real_data)],
    ids=["small", "real"],
)
def images(request: pytest.FixtureRequest) -> Folder:
    """`images("cifar100")`: a folder with small images, and in a second test the published ones."""
    folder: Folder = request.getfixturevalue(request.param)
    return folder
