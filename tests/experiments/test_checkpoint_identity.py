"""A checkpoint belongs to one run, and nothing is written through links or pipes of a store."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark

from twofold import UserError, run_all
from twofold.experiments import checkpoints
from twofold.experiments.config import Config, configure
from twofold.experiments.execution import Finished, run_in_store
from twofold.experiments.runs import Run
from twofold.experiments.store import Store


def toy(**options) -> Config:
    return configure(class_benchmark(), "er", batch_size=16, memory_per_class=10, **options)


def interrupted(config: Config, store: Store) -> Path:
    """Train the first part of a run; return its checkpoint."""
    records = []

    def stop(progress) -> None:
        records.append(progress)
        if len(records) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_store(config, store, None, stop, checkpoint_every=0)
    (checkpoint,) = (store.folder / ".work" / config.identity()).glob("*.pt")
    return checkpoint


def trained(config: Config, store: Store) -> Finished:
    answer = run_in_store(config, store, None)
    assert isinstance(answer, Finished)
    return answer


def losses(finished: Finished) -> np.ndarray:
    return np.asarray(Run.load(finished.folder).columns["loss"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> np.ndarray:
    return losses(trained(toy(), Store(tmp_path_factory.mktemp("store"))))


def swap(checkpoint: Path, store: Store) -> None:
    shutil.copy(interrupted(toy(lr=0.02), store), checkpoint)


def damage(checkpoint: Path, store: Store) -> None:
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    checkpoint.write_bytes(content)


def cut(checkpoint: Path, store: Store) -> None:
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])


def replace(checkpoint: Path, store: Store) -> None:
    """Its digest and run are right, and its contents are not."""
    checkpoints.write(checkpoint, {"values": torch.zeros(3)}, toy().identity())


def widen(checkpoint: Path, store: Store) -> None:
    state = checkpoints.read(checkpoint, run=toy().identity())
    state["values"] = torch.zeros(3)
    checkpoints.write(checkpoint, state, toy().identity())


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (swap, "belongs to a different run"),
        (damage, "is damaged"),
        (cut, "is damaged"),
        (replace, "belongs to a different network"),
        (widen, "belongs to a different network"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_named_and_left(spoil, why, undisturbed, tmp_path):
    store = Store(tmp_path)
    spoil(interrupted(toy(), store), store)
    finished = trained(toy(), store)
    assert finished.restarted == f"its checkpoint {why}"
    np.testing.assert_array_equal(losses(finished), undisturbed)


def test_a_sound_checkpoint_is_continued_without_a_word(undisturbed, tmp_path):
    store = Store(tmp_path)
    interrupted(toy(), store)
    finished = trained(toy(), store)
    assert finished.restarted == ""
    np.testing.assert_array_equal(losses(finished), undisturbed)


def test_the_command_says_why_in_one_line(tmp_path, capsys):
    store = Store(tmp_path)
    swap(interrupted(toy(), store), store)
    run_all(toy(), out=tmp_path, progress=False)
    message = capsys.readouterr().err.strip().splitlines()
    assert len(message) == 1
    assert message[0].endswith(
        "(trained from the start: its checkpoint belongs to a different run)"
    )


def test_weights_of_a_refused_checkpoint_are_not_kept(tmp_path):
    store, config = Store(tmp_path), toy(keep_weights="switches")
    checkpoint = interrupted(config, store)
    other = checkpoint.parent / "weights" / "task-9.safetensors"
    shutil.copy(other.with_name("task-1.safetensors"), other)
    damage(checkpoint, store)
    folder = trained(config, store).folder
    assert sorted(Run.load(folder).states) == ["task-1", "task-2", "task-3"]


# Nothing is written through what a stranger has put into a store


@pytest.fixture
def mine(tmp_path) -> Path:
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    return file


@pytest.mark.parametrize("name", ["checkpoint.part", "checkpoint.pt", "log.txt"])
def test_a_link_in_a_store_is_not_written_through(name, mine, tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    place = store.folder / ".work" / toy().identity()
    place.mkdir(parents=True)
    (place / name).symlink_to(mine)
    interrupted(toy(), store)

    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("it fails")

    monkeypatch.setattr("twofold.experiments.execution.Training", fail)
    assert run_all(toy(), out=store.folder).failures
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("place", [".work", f".work/{toy().identity()}", "weights"])
def test_a_folder_that_is_a_link_is_refused(place, tmp_path):
    store, mine = Store(tmp_path / "store"), tmp_path / "mine"
    mine.mkdir()
    if place == "weights":
        place = f".work/{toy().identity()}/weights"
    link = store.folder / place
    link.parent.mkdir(parents=True)
    link.symlink_to(mine)
    with pytest.raises(UserError, match="symbolic link"):
        run_in_store(toy(keep_weights="end"), store, None)
    assert list(mine.iterdir()) == []


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_claim_that_is_no_file_is_answered_at_once(kind, mine, tmp_path):
    store = Store(tmp_path / "store")
    claim = store.folder / ".work" / f"{toy().identity()}.claim"
    claim.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(claim)
    else:
        claim.symlink_to(mine)
    errors: list[str] = []

    def work() -> None:
        try:
            run_in_store(toy(), store, None)
        except UserError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert len(errors) == 1
    assert "no lock file" in errors[0]
    assert mine.read_text() == "mine"


def test_a_checkpoint_that_is_a_pipe_is_not_waited_for(undisturbed, tmp_path):
    store = Store(tmp_path)
    place = store.folder / ".work" / toy().identity()
    place.mkdir(parents=True)
    os.mkfifo(place / "checkpoint.pt")
    result: list[Finished] = []
    thread = threading.Thread(target=lambda: result.append(trained(toy(), store)), daemon=True)
    thread.start()
    thread.join(30)
    assert result
    assert result[0].restarted == "its checkpoint cannot be read"


def spoilt(**entries: object) -> Callable[[Path, Store], None]:
    def spoil(checkpoint: Path, store: Store) -> None:
        state = checkpoints.read(checkpoint, run=toy().identity())
        assert state is not None
        checkpoints.write(checkpoint, {**state, **entries}, toy().identity())

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda checkpoint, store: checkpoints.write(checkpoint, [1], toy().identity()),
        *(spoilt(n=n) for n in ("x", {}, torch.zeros(3), 10**9)),
        *(spoilt(task=task) for task in ("x", torch.zeros(3))),
        *(spoilt(curves=curves) for curves in ([], {}, {"task": "x"}, {"task": np.zeros((2, 2))})),
        spoilt(curves={"task": np.ones(3), "loss": np.ones(2)}),
        *(spoilt(**{part: 7}) for part in ("memory", "objective", "task_ends", "seconds")),
    ],
)
def test_a_forged_checkpoint_is_left_at_once(spoil, undisturbed, tmp_path):
    """Its digest and its run are right. Looking for text among all numbers took forever."""
    store = Store(tmp_path)
    spoil(interrupted(toy(), store), store)
    finished = trained(toy(), store)
    assert finished.restarted == "its checkpoint belongs to a different network"
    np.testing.assert_array_equal(losses(finished), undisturbed)


@pytest.mark.parametrize("kind", ["link", "dangling link", "file", "pipe"])
def test_something_else_under_the_name_of_a_run_is_set_aside(kind, undisturbed, tmp_path, capsys):
    """A link to a run elsewhere is not taken for the run, as in every listing."""
    store = Store(tmp_path / "store")
    store.prepare()
    place = store.folder / toy().folder_name()
    if kind == "link":
        trained(toy(), Store(tmp_path / "other"))
        place.symlink_to(tmp_path / "other" / place.name)
    elif kind == "dangling link":
        place.symlink_to(tmp_path / "nowhere")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.write_text("mine")
    finished = trained(toy(), store)
    assert finished.state == "trained"
    np.testing.assert_array_equal(losses(finished), undisturbed)
    assert "is no folder of this store; set aside in" in capsys.readouterr().err
    assert len(list((store.folder / ".damaged").iterdir())) == 1
    assert kind != "link" or (tmp_path / "other" / place.name).is_dir()
