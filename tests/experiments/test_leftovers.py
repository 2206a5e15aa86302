"""What killed processes leave in a store: the next command removes it, but not of the living."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from twofold.errors import UserError
from twofold.experiments.store import ABANDONED, Store
from twofold.locks import try_lock

HOLD = """
import sys, fcntl
file = open(sys.argv[1], "x")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.prepare()
    (tmp_path / ".work").mkdir()
    return store


@pytest.mark.parametrize("name", [".probe-x", ".work/0.token", ".work/worker-host-1.log"])
def test_files_of_the_dead_are_removed(name: str, store: Store) -> None:
    (store.folder / name).write_text("left")
    store.prepare()
    assert not (store.folder / name).exists()


@pytest.mark.parametrize("name", ["0.token", "worker-host-1.log"])
def test_files_of_the_living_stay(name: str, store: Store) -> None:
    file = store.folder / ".work" / name
    command = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdout is not None
        living.stdout.readline()
        store.prepare()
        assert file.exists()
        living.kill()
    store.prepare()
    assert not file.exists()


def test_a_run_that_was_being_written_is_removed_when_nobody_can_be_writing_it(
    store: Store,
) -> None:
    old, new = (store.folder / ".work" / f".0123456789-{k}" for k in ("old", "new"))
    for folder in (old, new):
        folder.mkdir()
        (folder / "config.json").touch()
    long_ago = time.time() - 2 * ABANDONED
    os.utime(old, (long_ago, long_ago))
    store.prepare()
    assert not old.exists()
    assert new.exists()


def test_checkpoints_claims_and_runs_stay(store: Store) -> None:
    place = store.folder / ".work" / "0123456789"
    place.mkdir()
    (place / "checkpoint.pt").touch()
    with try_lock(place.with_suffix(".claim")) as held:
        assert held
        store.prepare()
        assert place.with_suffix(".claim").exists()
    assert (place / "checkpoint.pt").exists()


def test_a_link_among_them_is_not_followed(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    (store.folder / ".work" / "x.token").symlink_to(mine / "file")
    link = store.folder / ".work" / ".0123456789-x"
    link.symlink_to(mine)
    os.utime(mine, (0, 0))
    store.prepare()
    assert (mine / "file").read_text() == "mine"


def test_nothing_outside_is_moved_or_removed_if_the_work_folder_is_a_link(tmp_path: Path) -> None:
    """Whoever writes a store can let `.work` lead anywhere, and this store is only read."""
    home, folder = tmp_path / "home", tmp_path / "store"
    for place in (".er-bashrc.old", ".config-old", "er-folder"):
        (home / place).mkdir(parents=True)
        os.utime(home / place, (0, 0))
    for name in ("worker-1.log", "my.token"):
        (home / name).write_text("mine")
    before = sorted(home.iterdir())
    folder.mkdir()
    (folder / ".work").symlink_to(home)
    Store(folder).runs()
    assert sorted(home.iterdir()) == before
    with pytest.raises(UserError, match="symbolic link"):
        Store(folder).prepare()
    assert sorted(home.iterdir()) == before
    assert not (folder / "er-bashrc").exists()
