"""The run store: a folder with one folder per run, or an archive.

    STORE/store.json                    the store's format
    STORE/<benchmark>-...-<identity>/   a complete run: config, summary, curves, checksums, weights
    STORE/.work/<identity>/             a run that is being trained: its checkpoint and log
    STORE/.work/<identity>.claim        locked by the process that trains it
    STORE/.work/.<identity>-<random>/   a complete run while it is written
    STORE/.work/.<name>.old             a run that is being replaced, if folders cannot be swapped
    STORE/.damaged/                     run folders that were found damaged, set aside

A run is either complete or not there, since its folder is written under a different name and then
renamed. An archive (see archive.py) holds its runs in a few files and is read-only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from twofold.errors import UserError
from twofold.experiments.archive import CURVES, KIND, MARK, Archive, identity_of, read_mark
from twofold.experiments.checksums import DamagedRunError, check, read_files, write_checksums
from twofold.experiments.columns import StoredColumns
from twofold.experiments.config import Config
from twofold.experiments.digests import serving_identities
from twofold.experiments.files import digest, exchange, own_folder, sync, sync_names
from twofold.experiments.files import writing as writing
from twofold.experiments.plain import WrongContentError
from twofold.experiments.runs import Run
from twofold.experiments.several import Runs
from twofold.experiments.weights import FOLDER as WEIGHTS
from twofold.experiments.weights import holds, written
from twofold.locks import try_lock
from twofold.plainfiles import real, replace_file
from twofold.text import inert

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1  # of a store; archives have a different one
PROBE = ".probe-"
ABANDONED = 3600.0  # seconds after which nobody is writing a run any more
KEPT = 64 * 2**20  # bytes of curves that stay in memory after they were checked
NAMED = 3  # runs that cannot be read and are named; the others are counted
ATTEMPTS = 10  # to replace a run that other processes replace at the same time


class Store:
    """A folder of runs, which many processes on several machines may use at the same time."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        mark = read_mark(self.folder)
        archived = mark is not None and mark.get("kind") == KIND
        self._archive = Archive(self.folder) if archived else None
        self._sound: set[tuple[str, int]] = set()  # curves that were checked

    def prepare(self) -> None:
        """Create the folder, and raise UserError before training if it cannot be written."""
        self._check_open()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, probe = tempfile.mkstemp(dir=self.folder, prefix=PROBE)
            os.close(descriptor)
            Path(probe).unlink(missing_ok=True)  # a different command may have swept it away
            self._sweep()
            if not (self.folder / MARK).exists():
                replace_file(self.folder / MARK, json.dumps({"format": FORMAT}) + "\n")

    def _sweep(self) -> None:
        """Remove files that killed processes have left behind. The living hold locks on theirs."""
        work = self._place_of("")
        if work.is_symlink():
            own_folder(work)  # which refuses it
        for probe in self.folder.glob(f"{PROBE}*"):
            probe.unlink(missing_ok=True)
        for left in (*work.glob("*.token"), *work.glob("worker-*.log")):
            with contextlib.suppress(UserError, OSError), try_lock(left):
                pass  # it removes the file if nobody else holds it
        for unfinished in work.glob(".*-*"):  # a run that was being written
            with contextlib.suppress(OSError):
                if unfinished.stat().st_mtime < time.time() - ABANDONED:
                    shutil.rmtree(unfinished)

    def _check_open(self) -> None:
        """Refuse to train runs into an archive, or to remove them."""
        if self._archive is not None:
            raise UserError(
                f"{self.folder} is an archive, which stays as it is: train into a different "
                f"folder, then add the runs with `twofold runs export --to {self.folder}`"
            )

    def find(self, config: Config) -> Path | None:
        """Return the place of a complete run of a configuration. A damaged run is set aside.

        A run is not complete without the weights that the configuration asks to keep.
        """
        for folder in filter(None, map(self.find_identity, serving_identities(config))):
            tasks = len(self._summary(folder).get("accuracy_after_task", []))
            if config.keep_weights == "none" or holds(folder, config.keep_weights, tasks):
                return folder
        return None

    def find_identity(self, identity: str) -> Path | None:
        """Return the place of a sound run, and set a damaged one aside."""
        for folder in self._named(identity):
            try:
                self._load(folder)
                return folder
            except (DamagedRunError, WrongContentError) as error:
                if self._archive is None:
                    self.set_aside(folder, str(error))
        return None

    def _named(self, identity: str) -> list[Path]:
        """Return the places of an identity, complete or not."""
        return [self.folder / name for name in self._names() if name.endswith(f"-{identity}")]

    def _names(self) -> list[str]:
        if self._archive is not None:
            return self._archive.names()
        if not self.folder.is_dir():
            return []
        self._restore()
        return os.listdir(self.folder)  # noqa: PTH208 (thousands of names, no paths)

    def save(self, run: Run, weights: Mapping[str, Mapping[str, Tensor]] = {}) -> Path:
        """Write a run's folder, whole or not at all. It replaces a run of the same identity.

        weights: state dicts to keep by name (`end`, or `task-1`, ...), in addition to those of the
            run. If there are none, the weights of an old run with the same curves are kept.
        """
        states = {name: dict(state) for name, state in weights.items()}
        whole = dataclasses.replace(run, states={**run.states, **states}) if states else run
        return self.save_files(run.config.folder_name(), whole.write)

    def save_files(self, name: str, write: Callable[[Path], None]) -> Path:
        """Do the same by the name of the folder. `write` writes the run's files into a folder."""
        self._check_open()
        folder, identity = self.folder / name, identity_of(name)
        unfinished = self._place_of(f".{identity}-{uuid.uuid4().hex}")
        with writing(self.folder):
            self._work_folder()
            unfinished.mkdir()
            try:
                write(unfinished)
                old = self._named(identity)
                _keep_weights(old, unfinished)
                write_checksums(unfinished)
                sync(unfinished)
                self._put(unfinished, folder)
                sync_names(self.folder)
                for other in old:  # the same run under the name of a different profile
                    if other != folder:
                        shutil.rmtree(other, ignore_errors=True)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return folder

    def _put(self, new: Path, folder: Path) -> None:
        """Rename a folder, and then remove the folder that had this name before."""
        for _ in range(ATTEMPTS):
            try:
                new.rename(folder)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            with contextlib.suppress(FileNotFoundError):  # another was faster: try again
                if exchange(new, folder) or self._replace(new, folder):
                    return
        raise UserError(f"can't write {folder}: other processes keep replacing it")

    def _replace(self, new: Path, folder: Path) -> bool:
        """Replace a folder in two steps. `_restore` undoes the first if it is interrupted."""
        aside = self._aside(folder)
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        try:
            new.rename(folder)
        except OSError as error:
            self._restore()
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        sync_names(self.folder)
        shutil.rmtree(aside, ignore_errors=True)
        return True

    def _aside(self, folder: Path) -> Path:
        return self._place_of(f".{folder.name}.old")

    def _restore(self) -> None:
        """Restore runs whose replacement was interrupted."""
        work = self._place_of("")
        for aside in () if work.is_symlink() else work.glob(".*.old"):  # it may lead anywhere
            folder = self.folder / aside.name[1:].removesuffix(".old")
            if not folder.exists():
                with contextlib.suppress(OSError):
                    aside.rename(folder)

    def folders(self) -> list[Path]:
        """Return the folders of all runs by name, without stores inside this folder.

        The folders of an archive's runs do not exist on disk.
        """
        places = sorted(self.folder / name for name in self._names() if "-" in name[1:])
        if self._archive is not None:
            return places
        runs = (p for p in places if not p.name.startswith(".") and self._is_inside(p))
        return [folder for folder in runs if not (folder / MARK).exists()]

    def _is_inside(self, place: Path) -> bool:
        """Tell whether this is a folder of the store: a link that leads out is not followed."""
        if place.is_symlink() and real(self.folder) not in real(place).parents:
            return False
        return place.is_dir()

    def inner(self) -> list[Path]:
        """Return the stores in this folder."""
        return sorted(mark.parent for mark in self.folder.glob(f"*/{MARK}"))

    def runs(self, curves: bool = False) -> Runs:
        """Return all complete runs, each once. Damaged and unreadable ones are reported.

        curves: whether to check the curves as well, so that no later use of them fails.
        """
        return Runs(self._loaded(curves))

    def summaries(self, damaged: bool = False) -> list[dict[str, Any]]:
        """Return the summaries of all complete runs, each with the run's folder.

        damaged: whether to include damaged runs, with the folder alone if one cannot be read.
        """
        if not damaged:
            return [{**run.summary, "folder": str(run.folder)} for run in self.runs()]
        return [{**self._summary(place), "folder": str(place)} for place in self.folders()]

    def _summary(self, place: Path) -> dict[str, Any]:
        try:
            return Run.of_store(place).summary
        except UserError:
            return {}

    def frame(self) -> pd.DataFrame:
        """Return all curves: a row per run and iteration, with the run's name and options."""
        return self.runs().frame()

    def damaged(self, places: Iterable[Path]) -> dict[Path, str]:
        """Check runs and their checksums, and return what is wrong with each damaged run."""
        reasons: dict[Path, str] = {}
        if self._archive is not None:
            wrong = self._archive.damaged(place.name for place in places)
            reasons = {self.folder / name: why for name, why in wrong.items()}
        for place in places:
            try:
                if self._archive is None:
                    check(place)
                Run.of_store(place, curves=place not in reasons)
            except (DamagedRunError, WrongContentError) as error:
                reasons.setdefault(place, str(error))
        return reasons

    def _loaded(self, curves: bool) -> list[Run]:
        """Load all runs, each once; report those that cannot be read, and copies."""
        if not self.folder.is_dir():  # its name may be misspelt
            raise UserError(f"there is no folder {self.folder}")
        places, wrong = self.folders(), dict[Path, str]()
        runs: dict[str, Run] = {}
        kept = 0
        for place in places:
            try:
                run = self._load(place, curves)
            except (DamagedRunError, WrongContentError) as error:
                wrong[place] = f"{error}; it is left out"
                continue
            kept += run.columns.size if isinstance(run.columns, StoredColumns) else 0
            if kept > KEPT:  # the curves of a large study need much memory
                run.forget()
            first = runs.setdefault(identity_of(place.name), run)
            if first is not run:
                wrong[place] = f"it is a copy of {first.name}, and counts once"
        for place, why in list(wrong.items())[:NAMED]:
            print(f"{inert(str(place))}: {why}", file=sys.stderr)
        if len(wrong) > 1:
            share = f"{len(wrong):,} of {len(places):,} runs"
            advice = "cannot be read or are copies; see `twofold runs verify`"
            print(f"{share} {advice}", file=sys.stderr)
        return list(runs.values())

    def _load(self, place: Path, curves: bool = False) -> Run:
        if self._archive is not None:  # its curves are compared when they are read
            return Run.of_store(place, curves)
        if not self._is_inside(place):
            raise DamagedRunError("it is no folder of this store")
        contents = read_files(place)
        version = place.name, hash(tuple(contents.values()))
        run = Run.of_store(place, curves and version not in self._sound, contents)
        if curves:
            self._sound.add(version)
        return run

    def set_aside(self, folder: Path, why: str) -> None:
        """Move a damaged run into the folder `.damaged`, where it can be examined."""
        with writing(self.folder):
            place = own_folder(self.folder / ".damaged") / f"{folder.name}.{uuid.uuid4().hex[:8]}"
            try:
                folder.rename(place)
            except FileNotFoundError:  # a different process was faster
                return
        print(inert(f"{folder}: {why}; set aside in {place}"), file=sys.stderr)

    def remove(self, folder: Path) -> None:
        """Remove a run with its unfinished work. An archive refuses."""
        if self._archive is not None:
            raise UserError(
                f"{self.folder} is an archive, from which nothing is removed: export the runs to "
                "keep to a new one, with `twofold runs export --to DIR`"
            )
        with writing(self.folder):
            self._work_folder()
            shutil.rmtree(self._aside(folder), ignore_errors=True)
            shutil.rmtree(folder)

    def _work_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        own_folder(self.folder / ".work")

    def _place_of(self, identity: str) -> Path:
        return self.folder / ".work" / identity

    def log_of(self, config: Config) -> Path:
        """Return the path of the log of a failed run."""
        return self._place_of(config.identity()) / "log.txt"

    @contextmanager
    def claim(self, config: Config) -> Iterator[Work | None]:
        """Yield the place to train a run in, or None while a different process trains it.

        The claim is a lock, which ends with the process even if it is killed.
        """
        self._check_open()
        place = self._place_of(config.identity())
        with writing(self.folder):
            self._work_folder()
        with try_lock(place.with_suffix(".claim")) as held:
            if held:
                with writing(self.folder):
                    own_folder(place)
            yield Work(place) if held else None


class Work:
    """The place where a claimed run is trained."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / "checkpoint.pt"
        self.refused = ""  # why the run did not continue from its checkpoint

    def refuse(self, why: str) -> None:
        self.refused = why

    def clear(self) -> None:
        """Remove the files of a run that is complete and saved."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _keep_weights(old: Iterable[Path], new: Path) -> None:
    """Copy the weights of an old run with the same curves if the new one has none."""
    for folder in old:
        names = written(folder)
        if not names or written(new):
            continue
        try:
            check(folder)
            if digest(folder / CURVES) == digest(new / CURVES):
                (new / names[0]).parent.mkdir()
                for name in names:
                    shutil.copyfile(folder / name, new / name)
        except (DamagedRunError, FileNotFoundError):  # a different process may be replacing it
            shutil.rmtree(new / WEIGHTS, ignore_errors=True)
