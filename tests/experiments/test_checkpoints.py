"""Saving: two at once, beside a claim, unreadable for a moment; and what checkpoints hold."""

from __future__ import annotations

import builtins
import collections
import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark

import twofold
from twofold import Routine, Run, Store, UserError
from twofold.experiments import checkpoints
from twofold.experiments.checksums import check
from twofold.memories import Reservoir
from twofold.objectives import Er
from twofold.terms import Addition
from twofold.training import Training


@pytest.fixture(scope="module")
def made() -> Run:
    return twofold.run(class_benchmark(), "er", batch_size=10, iterations=2)


def test_two_saves_of_one_run_at_once_are_one_run(made, tmp_path):
    """Both have written their files before either puts its folder in place."""
    store, both, errors = Store(tmp_path), threading.Barrier(2), []
    store.prepare()

    def write(folder: Path) -> None:
        made.write(folder)
        both.wait(10)

    def save() -> None:
        try:
            store.save_files(made.config.folder_name(), write)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.runs()) == 1
    assert list((tmp_path / ".work").iterdir()) == []


def test_a_save_leaves_the_place_of_a_process_that_trains_the_same_run(made, tmp_path):
    store = Store(tmp_path)
    store.prepare()
    with store.claim(made.config) as work:
        assert work is not None
        store.save(made)
        checkpoints.write(work.checkpoint, {})
        work.clear()


def test_a_file_that_cannot_be_opened_just_now_is_not_damaged(made, tmp_path, monkeypatch):
    store = Store(tmp_path)
    folder = store.save(made)

    def no_more_files(*args: object, **options: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", no_more_files)
        patch.setattr(os, "open", no_more_files)
        with pytest.raises(twofold.UserError, match="Too many open files"):
            store.find(made.config)
    assert store.find(made.config) == folder
    check(folder)


def test_a_place_that_cannot_be_written_is_told_before_training(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with monkeypatch.context() as patch:
        patch.setattr(Training, "run", lambda self: pytest.fail("it was trained"))
        with pytest.raises(twofold.UserError, match="can't write"):
            twofold.run(class_benchmark(), "er", out=tmp_path / "file" / "x")


@pytest.mark.parametrize("text", ['{"format": "one"}', "[]", "{"])
def test_a_mark_that_makes_no_sense(text, tmp_path):
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(twofold.UserError, match="a run store"):
        Store(tmp_path)


def test_checkpoints_hold_numpys_numbers(tmp_path):
    path = tmp_path / "checkpoint.pt"
    checkpoints.write(path, {"a": np.float64(0.5), "b": [np.int64(3), np.bool_(True)], "c": None})
    assert checkpoints.read(path) == {"a": 0.5, "b": [3, True], "c": None}


def test_what_checkpoints_cannot_hold_is_told_when_it_is_written(tmp_path):
    with pytest.raises(TypeError, match="plain data"):
        checkpoints.write(tmp_path / "checkpoint.pt", {"a": object()})


def test_a_flipped_bit_in_a_checkpoint_is_found(tmp_path):
    path = tmp_path / "checkpoint.pt"
    checkpoints.write(path, {"values": torch.full((1000,), 500)})
    content = path.read_bytes()
    (place,) = {content.index((500).to_bytes(8, "little"))}
    path.write_bytes(content[:place] + bytes([content[place] ^ 128]) + content[place + 1 :])
    assert checkpoints.read(path) is None


def keeping(kept: object, at_start: bool = True) -> None:
    """Define a routine that keeps something, from its start or from its first step on."""

    class Keeping(Routine, name="keeping"):
        value, early = kept, at_start

        def start(self, net):
            if self.early:
                self.kept = [{"inside": self.value}]

        def direct(self, g, step):
            self.kept = [{"inside": self.value}]
            return g


@pytest.mark.parametrize("at_start", [True, False])
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.random.default_rng(0), "numpy.random._generator.Generator"),
        (collections.Counter(), "collections.Counter"),
        ({1, 2}, "set"),
        (np.array(["text"]), "numpy.ndarray"),
    ],
)
def test_state_that_no_checkpoint_holds_is_refused_at_once(tmp_path, at_start, value, kind):
    keeping(value, at_start)
    told = f"routine 'keeping' keeps {kind} in its attribute 'kept', which no checkpoint can hold"
    with pytest.raises(UserError, match=told):
        twofold.run(class_benchmark(), "er+keeping", batch_size=10, out=tmp_path)


def test_terms_objectives_and_memories_are_checked_too(tmp_path):
    class Forgetful(Addition, name="forgetful-term"):
        def loss(self, forward):
            self.seen = {1}
            return 0 * forward.logits.sum()

    class ForgetfulEr(Er, name="forgetful-er"):
        def passes(self, draw):
            self.seen = {1}
            return super().passes(draw)

    class ForgetfulMemory(Reservoir, name="forgetful-memory"):
        def keep(self, rows):
            self.seen = {1}
            return super().keep(rows)

    for method, memory, who in [
        ("er+forgetful-term", "", "term 'forgetful-term'"),
        ("forgetful-er", "", "objective 'forgetful-er'"),
        ("er", "forgetful-memory(9)", "memory 'forgetful-memory'"),
        ("er", "forgetful-memory(9,current=false)", "memory 'forgetful-memory'"),
    ]:
        with pytest.raises(UserError, match=f"{who} keeps set in its attribute 'seen'"):
            twofold.run(class_benchmark(), method, memory=memory, batch_size=10, out=tmp_path)


@pytest.mark.parametrize("value", [None, 1, "text", (1, [2.0]), np.float64(1), np.ones((2, 0, 3))])
def test_plain_state_is_kept(tmp_path, value):
    keeping(value)
    assert checkpoints.misfit({"a": [value]}) is None
    checkpoints.write(tmp_path / "file", {"a": [value]})
    assert checkpoints.read(tmp_path / "file") is not None


def test_a_checkpoint_of_terabytes_is_refused(tmp_path):
    """Most of it takes no room on the disk."""
    with (tmp_path / "checkpoint.pt").open("wb") as file:
        file.truncate(2**40)
    refused: list[str] = []
    assert checkpoints.read(tmp_path / "checkpoint.pt", refused=refused.append) is None
    assert refused == ["its checkpoint is too large"]
