"""Engines, which train all runs of a list in a store and report progress to a watcher."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.execution import (
    BUSY_PAUSE,
    CHECKPOINT_EVERY,
    NOBODY,
    Busy,
    Finished,
    OnProgress,
    run_in_store,
)
from twofold.experiments.files import own_folder
from twofold.experiments.live import Live
from twofold.experiments.runs import Run
from twofold.experiments.store import Store, writing
from twofold.plainfiles import replace_file
from twofold.results import Progress

TELL_EVERY = 0.2  # seconds between two messages about a run's progress
RETRIES = 1  # a run whose worker dies is tried once more
LOSSES = 3  # times that a run is tried again after its machine was lost


@dataclass(frozen=True)
class Mistake:
    """An error that the user can fix and that concerns all runs."""

    message: str


@dataclass(frozen=True)
class Failure:
    """An attempt that ended with an error."""

    traceback: str


@dataclass(frozen=True)
class Returned:
    """A run that was trained outside the store and must be saved there."""

    run: Run


@dataclass(frozen=True)
class Unfit:
    """A machine that lacks the data of a run."""

    node: str  # its number in the cluster
    host: str
    why: str


Answer = Finished | Busy | Mistake | Failure | Returned | Unfit  # how an attempt at a run ended


class Watcher(Protocol):
    """A receiver of the progress of runs, which are numbered by their place in the list."""

    def started(self, index: int) -> None: ...
    def progressed(self, index: int, progress: Progress) -> None: ...
    def finished(self, index: int, finished: Finished) -> None: ...
    def busy(self, index: int) -> None: ...  # a different process trains it, so it is tried later
    def retried(self, index: int, why: str) -> None: ...
    def failed(self, index: int, why: str, log: Path) -> None: ...
    def printed(self, index: int, line: str) -> None: ...  # by the process that trains it


class Engine(Protocol):
    """A way to train runs until each is complete or has failed."""

    def run(
        self, configs: Sequence[Config], store: Store, data: Path | None, watcher: Watcher
    ) -> None: ...


class Ledger:
    """The runs that are still to be trained. It reports the end of each to the watcher.

    Runs that are already complete are reported at once and need no worker.
    """

    def __init__(self, configs: Sequence[Config], store: Store, watcher: Watcher) -> None:
        self._configs, self._store, self._watcher = configs, store, watcher
        self._waiting = deque(i for i in range(len(configs)) if not self._is_there(i))
        self._not_before: dict[int, float] = {}  # for runs that a different process has claimed
        self._deaths: Counter[tuple[int, bool]] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def _is_there(self, index: int) -> bool:
        folder = self._store.find(self._configs[index])
        if folder is not None:
            finished = Finished("there", Run.load(folder).summary, folder)
            self._watcher.finished(index, finished)
        return folder is not None

    def next(self) -> int | None:
        """Remove the next run that is due from the waiting ones and return it."""
        now = time.monotonic()
        for index in self._waiting:
            if self._not_before.get(index, 0.0) <= now:
                self._waiting.remove(index)
                return index
        return None

    def answered(self, index: int, answer: Answer) -> None:
        """Process the end of an attempt. A mistake of the user ends all runs."""
        match answer:
            case Mistake(message):
                raise UserError(message)
            case Failure(text):
                self._fail(index, text.strip().splitlines()[-1], text)
            case Busy():
                self._not_before[index] = time.monotonic() + BUSY_PAUSE
                self._waiting.append(index)
                self._watcher.busy(index)
            case Unfit(_, host, why):
                self.put_back(index, f"node {host} is left out: {why}")
            case Returned(run):
                folder = self._store.save(run)
                self._watcher.finished(index, Finished("trained", run.summary, folder))
            case Finished():
                self._watcher.finished(index, answer)

    def put_back(self, index: int, why: str) -> None:
        """Try a run again elsewhere. It is no fault of its own."""
        self._waiting.appendleft(index)
        self._watcher.retried(index, why)

    def died(self, index: int, why: str, printed: str, fault: bool = True) -> None:
        """Try a run again from its checkpoint after its process died, or let it fail.

        fault: whether the run itself may be the cause, for example if it takes too much memory.
        """
        self._deaths[index, fault] += 1
        if self._deaths[index, fault] <= (RETRIES if fault else LOSSES):
            self.put_back(index, why)
        else:
            self._fail(index, why, f"{printed}{why}\n")

    def _fail(self, index: int, why: str, log: str) -> None:
        path = self._store.log_of(self._configs[index])
        with writing(self._store.folder):
            path.parent.parent.mkdir(parents=True, exist_ok=True)
            own_folder(path.parent.parent)
            replace_file(own_folder(path.parent) / path.name, log)
        self._watcher.failed(index, why, path)


@dataclass(frozen=True)
class InlineEngine:
    """An engine that trains runs in this process, one after the other.

    It is for components and data that exist in this process only.
    """

    checkpoint_every: float = CHECKPOINT_EVERY
    live: Live = NOBODY

    def run(
        self, configs: Sequence[Config], store: Store, data: Path | None, watcher: Watcher
    ) -> None:
        ledger = Ledger(configs, store, watcher)
        while ledger:
            index = ledger.next()
            if index is None:
                time.sleep(BUSY_PAUSE)
                continue
            watcher.started(index)
            on_progress = sparsely(_told(watcher, index))
            place = configs[index], store, data, on_progress
            answer = attempt(run_in_store, *place, self.checkpoint_every, self.live)
            ledger.answered(index, answer)


def _told(watcher: Watcher, index: int) -> OnProgress:
    return lambda progress: watcher.progressed(index, progress)


def attempt(train: Callable[..., Answer], *arguments: Any) -> Answer:
    """Train a run and return how the attempt ended."""
    try:
        return train(*arguments)
    except UserError as error:
        return Mistake(str(error))
    except Exception:  # the engine's process must learn of any error
        return Failure(traceback.format_exc())


def sparsely(tell: OnProgress, every: float = TELL_EVERY) -> OnProgress:
    """Return a function that passes progress on at most once in this many seconds.

    It converts the accuracy to a number.
    """
    last = 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            tell(dataclasses.replace(progress, accuracy=float(progress.accuracy)))

    return on_progress
