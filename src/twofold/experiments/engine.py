"""What an engine is: it makes all runs of a list in a store, and tells a watcher how it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from twofold.experiments.config import Config
from twofold.experiments.store import Store
from twofold.training import Progress

TELL_EVERY = 0.2  # seconds between two words about a run's progress
RETRIES = 1  # a run whose worker dies is tried once more
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


def sparsely(tell: Callable[[Status], None]) -> Callable[[Progress], None]:
    """Pass progress on, but not after every iteration."""
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= TELL_EVERY:
            last = now
            accuracy = float(progress.accuracy.mean())
            tell(Status(progress.task, progress.iteration, progress.iterations, accuracy))

    return report
