"""The run store: a folder with one folder a run.

    STORE/store.json                    the store's format
    STORE/<benchmark>-...-<identity>/   a complete run: config, summary, curves, checksums
    STORE/.work/<identity>/             a run in the making: its checkpoint and log
    STORE/.work/<identity>.claim        locked by the process that makes it
    STORE/.work/.<identity>-<random>/   a complete run while it is written
    STORE/.damaged/                     run folders that were found damaged, set aside

A run is either complete or not there: its folder is written under another name and renamed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.runs import CONFIG, CURVES, SHOWN, SUMMARY, Run
from twofold.locks import try_lock

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
MARK, CHECKSUMS = "store.json", "checksums.json"
FILES = (CONFIG, SUMMARY, CURVES)


class DamagedRunError(Exception):
    """A run folder that is not what was once written there."""


class Store:
    """A folder of runs. Many processes, also on several machines, may use one at the same time."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        mark = self.folder / MARK
        if not mark.exists():
            return
        try:
            found = int(json.loads(mark.read_text())["format"])
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(f"{mark} can't be read: is {folder} a run store?") from None
        if found > FORMAT:
            raise UserError(
                f"{folder} was written by a newer twofold (store format {found}, this one knows "
                f"{FORMAT}): update twofold, or use another folder"
            )

    def prepare(self) -> None:
        """Make the folder, and find out now, not after hours of training, if it can be written."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".probe-"):
                pass
            if not (self.folder / MARK).exists():
                replace_file(self.folder / MARK, json.dumps({"format": FORMAT}) + "\n")

    def find(self, config: Config) -> Path | None:
        """The folder of the complete run of this configuration. A damaged one is set aside."""
        return self.find_identity(config.identity())

    def find_identity(self, identity: str) -> Path | None:
        for folder in self._named(identity):
            try:
                check(folder)
                return folder
            except DamagedRunError as error:
                self.set_aside(folder, str(error))
        return None

    def _named(self, identity: str) -> list[Path]:
        """The folders of an identity, complete or not."""
        if not self.folder.is_dir():
            return []
        names = os.listdir(self.folder)  # noqa: PTH208 (thousands of names, no paths)
        return [self.folder / name for name in names if name.endswith(f"-{identity}")]

    def save(self, run: Run) -> Path:
        """Write a run's folder, whole or not at all, in place of one of the same identity."""
        return self.save_files(run.config.folder_name(), run.write)

    def save_files(self, name: str, write: Callable[[Path], None]) -> Path:
        """The same for a folder's name; `write` puts the run's files into a folder."""
        folder, identity = self.folder / name, identity_of(name)
        unfinished = self._place_of(f".{identity}-{uuid.uuid4().hex}")
        with writing(self.folder):
            unfinished.mkdir(parents=True)
            try:
                write(unfinished)
                sums = {name: digest(unfinished / name) for name in FILES}
                (unfinished / CHECKSUMS).write_text(json.dumps(sums, indent=2) + "\n")
                for old in self._named(identity):
                    shutil.rmtree(old, ignore_errors=True)
                try:
                    unfinished.replace(folder)
                except OSError:
                    if not (folder / CHECKSUMS).exists():  # another process has just saved it
                        raise
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return folder

    def folders(self) -> list[Path]:
        """Of all runs, by name. (A folder beside them may be another store.)"""
        found = (p for p in self.folder.glob("[!.]*-*") if p.is_dir())
        return sorted(folder for folder in found if not (folder / MARK).exists())

    def inner(self) -> list[Path]:
        """Other stores in this folder."""
        return sorted(mark.parent for mark in self.folder.glob(f"*/{MARK}"))

    def runs(self) -> list[Run]:
        """All complete runs. Damaged ones are named and left out."""
        return [Run.load(folder) for folder in self._sound()]

    def summaries(self) -> list[dict[str, Any]]:
        """The summaries of all complete runs, with the folder of each."""
        return [
            {**json.loads((folder / SUMMARY).read_text()), "folder": str(folder)}
            for folder in self._sound()
        ]

    def frame(self) -> pd.DataFrame:
        """All curves of all runs: a row a run and iteration, with the run's name and settings."""
        import pandas as pd

        frames = []
        for folder in self._sound():
            config = json.loads((folder / CONFIG).read_text())
            curves = pd.read_parquet(folder / CURVES)
            settings = {name: config[name] for name in SHOWN}
            frames.append(curves.assign(run=folder.name, **settings))
        if not frames:
            return pd.DataFrame()
        first = ["run", *SHOWN]
        joined = pd.concat(frames, ignore_index=True)
        return joined[first + [name for name in joined.columns if name not in first]]

    def _sound(self) -> Iterator[Path]:
        if not self.folder.is_dir():  # its name may be misspelt
            raise UserError(f"there is no folder {self.folder}")
        for folder in self.folders():
            try:
                check(folder)
            except DamagedRunError as error:
                print(f"{folder}: {error}; it is left out", file=sys.stderr)
            else:
                yield folder

    def set_aside(self, folder: Path, why: str) -> None:
        """Keep what is damaged out of the way, for whoever wants to look at it."""
        with writing(self.folder):
            (self.folder / ".damaged").mkdir(exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=self.folder / ".damaged"))
            try:
                folder.replace(place)
            except FileNotFoundError:  # another process was faster
                place.rmdir()
                return
        print(f"{folder}: {why}; set aside in {place}", file=sys.stderr)

    def remove(self, folder: Path) -> None:
        with writing(self.folder):
            shutil.rmtree(folder)

    def _place_of(self, identity: str) -> Path:
        return self.folder / ".work" / identity

    def log_of(self, config: Config) -> Path:
        """What a run printed before it failed."""
        return self._place_of(config.identity()) / "log.txt"

    @contextmanager
    def claim(self, config: Config) -> Iterator[Work | None]:
        """The place to make a run in, or None while another process has it.

        The claim is a lock that ends with the process, however it ends.
        """
        place = self._place_of(config.identity())
        with writing(self.folder):
            (self.folder / ".work").mkdir(parents=True, exist_ok=True)
        with try_lock(place.with_suffix(".claim")) as held:
            if held:
                with writing(self.folder):
                    place.mkdir(exist_ok=True)
            yield Work(place) if held else None


class Work:
    """The place where a claimed run is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / "checkpoint.pt"

    def clear(self) -> None:
        """The run is complete: nothing of the making is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


def identity_of(name: str) -> str:
    """The end of a run folder's name."""
    return name.rpartition("-")[2]


def check(folder: Path) -> None:
    """Compare a run's files with its checksums."""
    try:
        sums = json.loads((folder / CHECKSUMS).read_text())
        for name in FILES:
            if digest(folder / name) != sums[name]:
                raise DamagedRunError(f"{name} is damaged")
    except FileNotFoundError as error:
        raise DamagedRunError(f"{Path(error.filename).name} is missing") from None
    except OSError as error:  # of the machine's: the files may be as they were
        raise UserError(f"can't read {folder}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError):
        raise DamagedRunError(f"{CHECKSUMS} is damaged") from None


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_file(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}-{os.getpid()}")
    unfinished.write_text(text)
    unfinished.replace(path)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What goes wrong with the disk is the user's to mend, in one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"the disk of {folder} is full: make room, then go on") from error
        raise UserError(f"can't write to {folder}: {error.strerror or error}") from error
