"""The published datasets themselves, as far as they are at hand."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from twofold.datasets import Dataset, check, load
from twofold.datasets.cache import root
from twofold.datasets.library import sources

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="session")
def folder(data_folder: Path | None) -> Path:
    """Also where the user's cache holds the data: these tests have a cache of their own."""
    return data_folder or root()


def loaded(name: str, folder: Path) -> Dataset:
    if sources()[name].find(folder) is None:
        pytest.skip(f"{name} is not in {folder}")
    return load(name, folder)


def is_fast(name: str, folder: Path) -> None:
    """By the time of this process: what else the machine does is not measured."""
    start = time.process_time()
    load(name, folder)
    assert time.process_time() - start < 1.0


def test_mnist(folder: Path) -> None:
    dataset = loaded("mnist", folder)
    assert dataset.train.images.shape == (60_000, 28, 28, 1)
    assert dataset.test.images.shape == (10_000, 28, 28, 1)
    assert dataset.test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert (dataset.train.images.mean() / 255).round(4) == 0.1307
    is_fast("mnist", folder)
    assert check("mnist", folder).startswith(
        "mnist: 60,000 + 10,000 images of 28x28x1, 10 classes, digest as published, from "
    )


def test_cifar100(folder: Path) -> None:
    dataset = loaded("cifar100", folder)
    train, test = dataset.train, dataset.test
    assert train.images.shape == (50_000, 32, 32, 3)
    assert np.bincount(train.labels).tolist() == [500] * 100
    assert np.bincount(test.labels).tolist() == [100] * 100
    assert train.coarse is not None
    assert len(set(zip(train.labels.tolist(), train.coarse.tolist(), strict=True))) == 100
    assert (train.images.mean((0, 1, 2)) / 255).round(4).tolist() == [0.5071, 0.4865, 0.4409]
    assert dataset.class_names[0] == "apple"
    is_fast("cifar100", folder)
    assert "digest as published" in check("cifar100", folder)


def test_mini_imagenet(folder: Path) -> None:
    dataset = loaded("mini-imagenet", folder)
    trained, tested = (np.bincount(s.labels) for s in (dataset.train, dataset.test))
    assert len(dataset.class_names) == 100
    assert tested.tolist() == ((trained + tested) // 6).tolist()
    assert dataset.train.images.shape[1:] == (84, 84, 3)
    assert dataset.class_names == tuple(sorted(dataset.class_names))
    is_fast("mini-imagenet", folder)
