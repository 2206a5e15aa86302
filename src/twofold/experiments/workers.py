"""Many runs: one after the other here, or in single-threaded worker processes, one a core."""

from __future__ import annotations

import multiprocessing
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol, cast

from twofold.discovery import import_file
from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.runs import execute
from twofold.training import Progress

TELL_EVERY = 0.2  # seconds between two words about a run's progress


class WorkerDiedError(RuntimeError):
    """A worker process ended in the middle of a run."""


@dataclass(frozen=True)
class Status:
    """Where a running run is."""

    task: int
    iteration: int
    iterations: int
    accuracy: float


class Watcher(Protocol):
    """Who is told how the runs go on. Runs are named by their place in the list."""

    def started(self, index: int) -> None: ...
    def progressed(self, index: int, status: Status) -> None: ...
    def finished(self, index: int, summary: dict[str, Any], folder: Path) -> None: ...


def run_all(
    configs: Sequence[Config], *, data: Path | None, out: Path, workers: int, watcher: Watcher
) -> None:
    """Make and save all runs. A run is in `out` when the watcher is told that it has finished."""
    workers = min(workers, len(configs))
    if workers <= 1:
        for index, config in enumerate(configs):
            watcher.started(index)
            run = execute(config, data, _sparsely(partial(watcher.progressed, index)))
            watcher.finished(index, run.summary, run.save(out))
    else:
        _Workers(configs, watcher).run(workers, data, out)


def _sparsely(tell: Callable[[Status], None]) -> Callable[[Progress], None]:
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


class _Workers:
    """Worker processes fed from one queue, so that no core idles.

    Each has a pipe of its own: one that is killed can't leave a shared lock behind.
    """

    def __init__(self, configs: Sequence[Config], watcher: Watcher) -> None:
        self._waiting = deque(enumerate(configs))
        self._watcher = watcher
        self._processes: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, int] = {}  # with which run

    def run(self, workers: int, data: Path | None, out: Path) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads
        try:
            for _ in range(workers):
                ours, theirs = context.Pipe()
                self._processes[ours] = context.Process(
                    target=_work, args=(theirs, data, out), daemon=True
                )
                self._processes[ours].start()
                theirs.close()
                self._hand_out(ours)
            while self._busy:
                for connection in wait(list(self._busy)):
                    self._listen(cast(Connection, connection))
        finally:
            for connection, process in self._processes.items():
                process.kill()
                process.join()
                connection.close()

    def _hand_out(self, to: Connection) -> None:
        self._busy.pop(to, None)
        if self._waiting:
            index, config = self._waiting.popleft()
            self._busy[to] = index
            to.send(config)
            self._watcher.started(index)

    def _listen(self, to: Connection) -> None:
        index = self._busy[to]
        try:
            word, *rest = to.recv()
        except (EOFError, ConnectionResetError):
            process = self._processes[to]
            process.join()
            raise WorkerDiedError(
                f"a worker process died in run {index + 1} (exit code {process.exitcode})"
            ) from None
        if word == "status":
            self._watcher.progressed(index, *rest)
        elif word == "finished":
            self._watcher.finished(index, *rest)
            self._hand_out(to)
        else:
            raise UserError(*rest) if word == "wrong" else RuntimeError(*rest)


def _work(connection: Connection, data: Path | None, out: Path) -> None:
    """A worker's life: take a configuration, make its run, say so; until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    tell = _sparsely(lambda status: connection.send(("status", status)))
    while True:
        try:
            config: Config = connection.recv()
        except EOFError:
            return
        try:
            for plugin in config.plugins:
                import_file(plugin)
            run = execute(config, data, tell)
            connection.send(("finished", run.summary, run.save(out)))
        except UserError as error:
            connection.send(("wrong", str(error)))
        except Exception:  # whatever it is, the parent must hear of it
            connection.send(("failed", traceback.format_exc()))
