"""What an engine is: it makes all runs of a list in a store, and tells a watcher how it goes."""

from __future__ import annotations

import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.execution import Outcome
from twofold.experiments.runs import Run
from twofold.experiments.store import Store, writing
from twofold.training import Progress

TELL_EVERY = 0.2  # seconds between two words about a run's progress
RETRIES = 1  # a run whose worker dies is tried once more
LOSSES = 3  # machines that a run may lose under it, which is hardly its fault
BUSY_PAUSE = 1.0  # seconds before asking again for a run that another process has claimed


@dataclass(frozen=True)
class Status:
    """Where a running run is."""

    task: int
    iteration: int
    iterations: int
    accuracy: float  # mean over the tasks seen so far


class Watcher(Protocol):
    """Who is told how the runs go on. Runs are named by their place in the list."""

    def started(self, index: int) -> None: ...
    def progressed(self, index: int, status: Status) -> None: ...
    def finished(
        self, index: int, summary: dict[str, Any], folder: Path, there: bool
    ) -> None: ...  # `there`: it was complete before
    def busy(self, index: int) -> None: ...  # another process makes it; asked again later
    def retried(self, index: int, why: str) -> None: ...
    def failed(self, index: int, why: str, log: Path) -> None: ...


class Engine(Protocol):
    """Makes runs until each is complete or has failed."""

    def run(
        self, configs: Sequence[Config], store: Store, data: Path | None, watcher: Watcher
    ) -> None: ...


class Ledger:
    """The runs that are still to be made. It tells the watcher what becomes of each.

    Those that are complete already are told at once, and need no worker.
    """

    def __init__(self, configs: Sequence[Config], store: Store, watcher: Watcher) -> None:
        self._configs, self._store, self._watcher = configs, store, watcher
        self._waiting = deque(i for i in range(len(configs)) if not self._is_there(i))
        self._not_before: dict[int, float] = {}  # for runs that another process has claimed
        self._deaths: Counter[tuple[int, bool]] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def _is_there(self, index: int) -> bool:
        folder = self._store.find(self._configs[index])
        if folder is not None:
            self._watcher.finished(index, Run.load(folder).summary, folder, there=True)
        return folder is not None

    def next(self) -> int | None:
        """The next run whose time has come, which is then no longer waiting."""
        now = time.monotonic()
        for index in self._waiting:
            if self._not_before.get(index, 0.0) <= now:
                self._waiting.remove(index)
                return index
        return None

    def answered(self, index: int, word: str, what: Any) -> None:
        """An `attempt` has ended so. A mistake of the user's ends everything."""
        if word == "wrong":
            raise UserError(what)
        if word == "failed":
            self._fail(index, what.strip().splitlines()[-1], what)
        else:
            self._take(index, what)

    def _take(self, index: int, outcome: Outcome) -> None:
        if outcome.summary is None or outcome.folder is None:
            self._not_before[index] = time.monotonic() + BUSY_PAUSE
            self._waiting.append(index)
            self._watcher.busy(index)
        else:
            there = outcome.state == "there"
            self._watcher.finished(index, outcome.summary, outcome.folder, there)

    def died(self, index: int, why: str, said: str, fault: bool = True) -> None:
        """The process that made it is dead: try again from its checkpoint, or give it up.

        fault: whether it may be the run's own, as when it takes too much memory.
        """
        self._deaths[index, fault] += 1
        if self._deaths[index, fault] <= (RETRIES if fault else LOSSES):
            self._waiting.appendleft(index)
            self._watcher.retried(index, why)
        else:
            self._fail(index, why, f"{said}{why}\n")

    def _fail(self, index: int, why: str, log: str) -> None:
        path = self._store.log_of(self._configs[index])
        with writing(self._store.folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(log)
        self._watcher.failed(index, why, path)


def attempt(make: Callable[[], object]) -> tuple[str, Any]:
    """Make a run and say how that went, in the words that `Ledger.answered` takes."""
    try:
        return "outcome", make()
    except UserError as error:
        return "wrong", str(error)
    except Exception:  # whatever it is, whoever is in charge must hear of it
        return "failed", traceback.format_exc()


def sparsely(
    tell: Callable[[Status], None], every: float = TELL_EVERY
) -> Callable[[Progress], None]:
    """Pass progress on, but not after every iteration: at most once in so many seconds."""
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            accuracy = float(progress.accuracy.mean())
            tell(Status(progress.task, progress.iteration, progress.iterations, accuracy))

    return report
