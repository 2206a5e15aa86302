"""Fixtures for the tests of the command line, named there as a pytest plugin."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from helpers.commandline import HALF, PER_CLASS, TINY, Command, Outcome, tiny
from twofold.cli import main
from twofold.experiments import estimate, running
from twofold.experiments.engine import InlineEngine


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The user's ~/.cache is not ours to fill."""
    return os.environ.get("TWOFOLD_CACHE") or str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def own_cache(cache_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE", cache_folder)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Forget what a test has registered, because other tests count what there is."""
    from twofold import Memory, Objective, Recipe, Routine
    from twofold.terms import Addition

    known = [kind.known for kind in (Recipe, Objective, Addition, Routine, Memory)]
    before = [dict(registry) for registry in known]
    yield
    for registry, names in zip(known, before, strict=True):
        registry.clear()
        registry.update(names)
    for module in [name for name in sys.modules if name.startswith("twofold_plugin_")]:
        del sys.modules[module]


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy dataset and tiny.py, the plugin; not to be changed."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "tiny.py").write_text(TINY)
    random = np.random.default_rng(0)
    first = 0
    for part, count in (("train", 64), ("val", 16), ("test", 20)):
        images = random.integers(0, 256, (count * PER_CLASS, 84, 84, 3), np.uint8)
        names = {
            f"n{first + k:08d}": list(range(k * PER_CLASS, (k + 1) * PER_CLASS))
            for k in range(count)
        }
        first += count
        content = {"image_data": images, "class_dict": names}
        (folder / f"mini-imagenet-cache-{part}.pkl").write_bytes(pickle.dumps(content))
    return folder


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A plugin with a routine."""
    file = tmp_path / "half.py"
    file.write_text(HALF)
    return file


@pytest.fixture
def twofold(own_cache: None, capsys: pytest.CaptureFixture[str]) -> Command:
    """`twofold("run", ...)` in this process, which has imported torch already."""

    def call(*args: object) -> Outcome:
        capsys.readouterr()
        code = main([str(arg) for arg in args])
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def run_tiny(
    twofold: Command, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Short runs in this process, into tmp_path / "out"; `options` overrule the usual ones."""
    # In this process, to spare the tests the start of workers.
    monkeypatch.setattr(running, "LocalEngine", lambda *options: InlineEngine())

    def call(methods: str, *options: object) -> Outcome:
        return twofold(*tiny(toy, tmp_path / "out", methods), *options)

    return call


@pytest.fixture
def fixed_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that takes a second per pass, and no time for anything else."""
    speed = estimate.Speed(1.0, 0.0, 0.0)
    monkeypatch.setattr(estimate, "calibrate", lambda *_: speed)
    monkeypatch.setattr(estimate, "start_seconds", lambda: 0.0)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    """A study file with this text, by its path."""

    def write(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return str(path)

    return write
