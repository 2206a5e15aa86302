"""What a user brings to a run makes a different run when it changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import publishers
from helpers.commandline import Outcome, process
from torch import nn

import twofold
from twofold import Benchmark, Recipe, Routine, Store
from twofold.discovery import import_file
from twofold.experiments import digests
from twofold.experiments.config import configure
from twofold.experiments.running import listed
from twofold.memories import Reservoir
from twofold.objectives import Er
from twofold.terms import Addition

SHORT = {"batch_size": 10, "eval_size": 10, "iterations": 2}
PLUGIN = """
import numpy, torch
from pathlib import Path
from twofold import Benchmark, Recipe
from noise import SCALE

class Noisy(Recipe, name="noisy"):
    title, about, dataset, scenario = "Noisy", "noise", None, "domain"
    tasks, offline_iterations = 2, 2

    @classmethod
    def build(cls, seed, folder=None, whitening="train", device="cpu"):
        x = SCALE * torch.from_numpy(numpy.load(Path(__file__).with_name("data.npy"))).float()
        y = torch.arange(30) % 2
        print("words of a plugin")
        parts = [(x[:20], y[:20], x[20:], y[20:])] * 2
        return Benchmark.from_tensors(cls.name, parts, offline_iterations=2)
"""


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    (tmp_path / "noisy.py").write_text(PLUGIN)
    (tmp_path / "noise.py").write_text("SCALE = 1.0\n")
    data(tmp_path, 0)
    return tmp_path


def data(folder: Path, seed: int) -> None:
    import numpy as np

    np.save(folder / "data.npy", np.random.default_rng(seed).normal(size=(30, 4)))


def trained(folder: Path, *more: object) -> Outcome:
    short = ("--batch-size", 10, "--iterations", 2, "--workers", 1)
    plugin = ("--plugin", folder / "noisy.py", "--out", folder / "out")
    return process("run", "noisy", "er", *plugin, *short, *more)


def test_a_changed_helper_or_data_file_makes_a_different_run(noisy: Path) -> None:
    """From a folder that is not the plugin's; and what the plugin prints is shown."""
    first = trained(noisy)
    assert (first.code, "was there" in first.err) == (0, False), first.err
    assert "er seed 142: words of a plugin" in first.err
    (noisy / "noise.py").write_text("SCALE = 2.5\n")
    second = trained(noisy, "--engine", "inline")
    assert (second.code, "was there" in second.err) == (0, False), second.err
    data(noisy, 1)
    third = trained(noisy, "--engine", "inline", "--seeds", 2)
    assert (third.code, "was there" in third.err) == (0, False), third.err
    assert [line.split()[-1] for line in third.out.splitlines() if " er " in line] == ["2"]  # seeds
    assert len(Store(noisy / "out").runs()) == 4


HELPED = """
from twofold import Routine
from strength import FACTOR

class Helped(Routine, name="helped"):
    def direct(self, g, step):
        return FACTOR * g
"""


def test_a_helper_of_a_routine_is_part_of_its_identity(tmp_path: Path) -> None:
    """No data tell the runs apart, only the text of a module that the plugin imports."""
    plugin, helper = tmp_path / "helped.py", tmp_path / "strength.py"
    plugin.write_text(HELPED)
    options = f"'rotated-mnist', 'er+helped', plugins=[{str(plugin)!r}]"
    script = f"import twofold; print(twofold.configure({options}).identity())"
    found = []
    for text in ("FACTOR = 1.0", "FACTOR = 0.5", "FACTOR = 1.0"):
        helper.write_text(text)
        command = [sys.executable, "-B", "-c", script]
        found.append(subprocess.check_output(command, text=True, timeout=600))
    assert found[0] == found[2] != found[1]


def own(value: float = 0.0, **options: Any) -> Benchmark:
    x, y = torch.full((30, 3), value), torch.arange(30) % 2
    return Benchmark.from_tensors("mine", [(x, y, x, y)] * 2, **options)


def routine(factor: float) -> type[Routine]:
    class Again(Routine, name="again"):
        def direct(self, g: Any, step: Any) -> Any:
            return factor * g

    return Again


def test_a_second_routine_of_one_name_does_not_replace_the_run_of_the_first(tmp_path: Path) -> None:
    for factor in (0.0, 1.0, 0.0):
        routine(factor)
        twofold.run(own(), "er+again", out=tmp_path, **SHORT)
    assert len(Store(tmp_path).runs()) == 2


def parts(factor: float) -> None:
    """Define an objective, a term and a memory, each with one name whatever the factor."""

    class AnotherEr(Er, name="another-er"):
        def passes(self, draw: Any) -> Any:
            passes = super().passes(draw)
            return passes if factor else passes[:1]

    class AnotherTerm(Addition, name="another-term"):
        def loss(self, forward: Any) -> Any:
            return factor * forward.logits.mean()

    class AnotherMemory(Reservoir, name="another-memory"):
        def keep(self, rows: Any) -> Any:
            return super().keep(rows[: int(factor)])


@pytest.mark.parametrize(
    ("method", "memory"), [("another-er", ""), ("er+another-term", ""), ("er", "another-memory(9)")]
)
def test_every_component_counts_with_its_source(method: str, memory: str) -> None:
    found = []
    for factor in (1.0, 2.0, 1.0):
        parts(factor)
        found.append(configure("rotated-mnist", method, memory=memory).identity())
    assert found[0] == found[2] != found[1]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def test_networks_that_look_alike_are_told_apart() -> None:
    class Doubled(Net):
        def forward(self, x: Any) -> Any:
            return 2 * self.layer(x)

    Doubled.__name__ = "Net"
    assert repr(Net()) == repr(Doubled())
    one, other = (configure(own(model=kind), "er") for kind in (Net, Doubled))
    assert one.identity() != other.identity()
    assert one.identity() == configure(own(model=Net), "er").identity()


def test_runs_without_own_code_have_no_digests() -> None:
    assert configure(own(), "er+gem").digests == []
    assert listed(configure("rotated-mnist", "er+gem"), None)[0].digests == []


@pytest.fixture
def recipe() -> Iterator[type[Recipe]]:
    class Filed(Recipe, name="filed"):
        title, about, dataset, scenario = "Filed", "from files", None, "domain"
        tasks, offline_iterations = 2, 2
        place = Path()
        built = 0

        @classmethod
        def files(cls, folder: Path | None) -> list[Path]:
            return [Filed.place]

        @classmethod
        def build(cls, *_: Any) -> Benchmark:
            raise RuntimeError("the disk is gone")

    digests._data._known.clear()
    yield Filed
    del Recipe.known["filed"]


def described(recipe: type[Recipe]) -> str:
    digests._data._known.clear()
    return digests._data.of(recipe, "train", None)


def test_a_file_is_read_again_if_its_size_or_time_changes(
    recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path))
    recipe.place = tmp_path / "data"
    recipe.place.write_text("one")
    first = described(recipe)
    read: list[Path] = []
    monkeypatch.setattr(digests, "sha256_of", lambda path: read.append(path) or "another")
    assert (described(recipe), read) == (first, [])
    os.utime(recipe.place, ns=(0, 0))
    assert (described(recipe) != first, len(read)) == (True, 1)
    recipe.place.write_text("three")  # a different size
    os.utime(recipe.place, ns=(0, 0))
    assert (described(recipe) != first, len(read)) == (True, 2)


def test_data_that_cannot_be_read_are_equal_to_none(
    recipe: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recipe, "files", classmethod(lambda cls, folder: ()))
    config = configure("filed", "er")
    one = digests.with_data(config, None)
    digests._data._known.clear()
    assert one.identity() != digests.with_data(config, None).identity()
    assert digests.unknown_reasons(one) == ["its data cannot be read here (the disk is gone)"]


def test_data_that_differ_each_time_are_equal_to_none(
    recipe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that does not draw from its seed."""

    def build(cls: type[Recipe], *_: Any) -> Benchmark:
        x, y = torch.randn(20, 4), torch.arange(20) % 2
        return Benchmark.from_tensors("filed", [(x, y, x, y)] * 2)

    monkeypatch.setattr(recipe, "files", classmethod(lambda cls, folder: ()))
    monkeypatch.setattr(recipe, "build", classmethod(build))
    one = digests.with_data(configure("filed", "er"), None)
    assert digests.unknown_reasons(one) == [
        "its build delivers different data each time: draw them from the seed"
    ]


def test_a_dataset_in_several_versions_counts_with_its_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mini-ImageNet, of which a user provides all images, some, or a different selection."""
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
    for name, per_class in (("one", 6), ("same", 6), ("larger", 7)):
        publishers.write_mini_pickles(tmp_path / name, publishers.mini_pickles(per_class), 2)
    config = configure("split-mini-imagenet", "er")
    one, same, larger, absent = (
        digests.with_data(config, tmp_path / name).identity()
        for name in ("one", "same", "larger", "absent")
    )
    assert one == same != larger
    assert absent == config.identity()  # an estimate needs no images


@pytest.mark.parametrize("text", ["[]", "3", '{"data": 3}', "not JSON"])
def test_a_cache_of_digests_that_is_none_is_made_anew(
    text: str, recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path))
    recipe.place = tmp_path / "data"
    recipe.place.write_text("one")
    (tmp_path / digests.FILES).write_text(text)
    assert not described(recipe).startswith(digests.UNKNOWN)


def test_a_run_that_cannot_be_described_is_trained_anew_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = threading.Lock()

    class Locking(Routine, name="locking"):
        def direct(self, g: Any, step: Any) -> Any:
            with lock:
                return g

    for _ in range(2):
        twofold.run(own(), "er+locking", out=tmp_path, **SHORT)
    assert len(Store(tmp_path).runs()) == 2
    (line, again) = capsys.readouterr().err.splitlines()
    assert line == again
    assert line.startswith("twofold: er+locking is trained anew every time: a _thread.lock")


def test_a_copy_of_a_plugin_is_the_plugin(tmp_path: Path) -> None:
    """A node of a cluster was sent a plugin, and later finds the file itself."""
    text = (
        "from twofold import Routine\n"
        "class Copied(Routine, name='copied'):\n    def after_step(self, step): pass\n"
    )
    places = [tmp_path / name for name in ("original", "copy")]
    for place in places:
        place.mkdir()
        (place / "mine.py").write_text(text)
    original, copy = (str(place / "mine.py") for place in places)
    config = configure("rotated-mnist", "er+copied", plugins=[original])
    import_file(copy)  # which defines the routine once more
    digests.check_unchanged(config)
