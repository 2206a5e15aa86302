"""A small sound store, and copies of it that a test can spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.hostile import accuracies
from helpers.runs import curve_run

from twofold.experiments.store import Store


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> Path:
    """A store with er and er+gem, two seeds each."""
    store = Store(tmp_path_factory.mktemp("sound") / "store")
    store.prepare()
    for method, dip in (("er", 40.0), ("er+gem", 60.0)):
        for seed in (142, 152):
            store.save(curve_run(method, accuracies(dip), seed, tasks=2, iterations=2))
    return store.folder


@pytest.fixture
def store(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "store"))
