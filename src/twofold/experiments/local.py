"""The local engine: single-threaded worker processes, one per core, fed from one queue."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import io
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, cast

from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.engine import (
    Answer,
    Ledger,
    Mistake,
    Watcher,
    attempt,
    sparsely,
)
from twofold.experiments.execution import BUSY_PAUSE, NOBODY, run_in_store
from twofold.experiments.files import own_folder
from twofold.experiments.live import Live
from twofold.experiments.store import Store, writing
from twofold.locks import hold
from twofold.results import Progress

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

# A run uses one thread. Libraries read these variables when they load, before a worker can act.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

WORKER = "twofold worker"  # the name of a worker process
UNGUARDED = 79  # its exit code if the script that started it starts workers when it is imported
GUARD = (
    "worker processes import this script, which would start workers again: put its calls below "
    '`if __name__ == "__main__":`, or set engine="inline"'
)


@dataclass
class LocalEngine:
    """An engine that trains runs in worker processes on this machine.

    workers: the number of processes; one per core by default.
    devices: devices to use instead of the runs' own, one worker per entry, such as cuda:0 twice.
    checkpoint_every: seconds between two checkpoints of a run.
    live: the sinks that receive the curves of running runs, from the workers.
    """

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    devices: Sequence[str] = ()
    checkpoint_every: float = 30.0
    live: Live = NOBODY

    def run(
        self, configs: Sequence[Config], store: Store, data: Path | None, watcher: Watcher
    ) -> None:
        _check_main()
        devices: list[str | None] = [*self.devices] or [None] * self.workers
        _Pool(configs, store, data, watcher, self.checkpoint_every, self.live).run(devices)


@dataclass
class _Worker:
    process: BaseProcess
    device: str | None
    log: Path
    index: int | None = None  # the number of the run that it trains
    shown: int = 0  # bytes of its log that have been shown

    def printed(self) -> list[str]:
        """Return the lines that it has printed since the last call."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self.shown)
            lines = file.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self.shown += len(whole)
        text = whole.decode(errors="replace").removesuffix("\n")
        return [line.rpartition("\r")[2] for line in text.split("\n")] if whole else []


class _Pool:
    """The workers, each with its own pipe, so that a killed worker leaves no shared lock."""

    def __init__(
        self,
        configs: Sequence[Config],
        store: Store,
        data: Path | None,
        watcher: Watcher,
        checkpoint_every: float,
        live: Live,
    ) -> None:
        self._configs, self._store, self._watcher = configs, store, watcher
        self._arguments = store, data, checkpoint_every, live
        self._ledger = Ledger(configs, store, watcher)
        self._workers: dict[Connection, _Worker] = {}

    def run(self, devices: Sequence[str | None]) -> None:
        os.environ.update({k: v for k, v in ONE_THREAD.items() if k not in os.environ})
        try:
            for device in devices[: len(self._ledger)]:
                self._hire(device)
            while self._ledger or self._busy():
                self._hand_out()
                for connection in wait(self._busy(), timeout=BUSY_PAUSE):
                    self._listen(cast(Connection, connection))
                for worker in self._workers.values():
                    self._show(worker)
        finally:
            for connection in list(self._workers):
                self._dismiss(connection)

    def _busy(self) -> list[Connection]:
        return [c for c, worker in self._workers.items() if worker.index is not None]

    def _hire(self, device: str | None) -> None:
        context = _context()
        own_end, worker_end = context.Pipe()
        arguments = worker_end, dict(os.environ), *self._arguments
        process = context.Process(target=_work, args=arguments, name=WORKER, daemon=True)
        process.start()
        worker_end.close()
        self._workers[own_end] = _Worker(process, device, _log_of(self._store, process.pid))

    def _dismiss(self, connection: Connection) -> None:
        worker = self._workers.pop(connection)
        worker.process.kill()
        worker.process.join()
        worker.log.unlink(missing_ok=True)
        connection.close()

    def _hand_out(self) -> None:
        """Give every idle worker the next run that is due."""
        for connection, worker in self._workers.items():
            if worker.index is not None:
                continue
            worker.index = self._ledger.next()
            if worker.index is None:
                return
            config = self._configs[worker.index]
            if worker.device is not None:
                config = dataclasses.replace(config, device=worker.device)
            self._watcher.started(worker.index)
            with contextlib.suppress(BrokenPipeError):  # `_listen` finds dead workers
                connection.send(config)

    def _show(self, worker: _Worker) -> None:
        """Show what a worker has printed."""
        if worker.index is not None:
            for line in worker.printed():
                self._watcher.printed(worker.index, line)

    def _listen(self, connection: Connection) -> None:
        worker = self._workers[connection]
        assert worker.index is not None
        index = worker.index
        try:
            message: Progress | Answer = connection.recv()
        except (EOFError, ConnectionResetError):
            self._bury(connection, worker, index)
            return
        if isinstance(message, Progress):
            self._watcher.progressed(index, message)
        else:
            self._show(worker)
            worker.index = None
            self._ledger.answered(index, message)

    def _bury(self, connection: Connection, worker: _Worker, index: int) -> None:
        """Replace a worker that has died."""
        worker.process.join()
        if worker.process.exitcode == UNGUARDED:
            raise UserError(GUARD) from None
        why = f"its worker died (exit code {worker.process.exitcode})"
        self._show(worker)
        printed = worker.log.read_text("utf-8", "replace") if worker.log.exists() else ""
        self._dismiss(connection)
        self._ledger.died(index, why, printed)
        if self._ledger:
            self._hire(worker.device)


def _check_main() -> None:
    """Refuse to start workers in a process that is importing its main script."""
    process = multiprocessing.current_process()
    if not getattr(process, "_inheriting", False):
        return
    if process.name == WORKER:
        os._exit(UNGUARDED)  # the process that started it says why, once for all workers
    raise UserError(GUARD)


def _context() -> ForkServerContext | SpawnContext:
    """Start the server from which workers are forked, unless it runs: it has imported torch once.

    A fork of this process would inherit torch's threads. Windows cannot fork.
    """
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    # This process handles Ctrl-C. The server and its workers inherit the blocked signals from its
    # start. The start of the resource tracker unblocks them, so that comes first.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return context


def _log_of(store: Store, pid: int | None) -> Path:
    return store.folder / ".work" / f"worker-{socket.gethostname()}-{pid}.log"  # hosts may share it


def _print_to(log: Path, store: Store) -> None:
    """Redirect all output of this process to a log file."""
    with writing(store.folder):
        own_folder(log.parent)
        log.unlink(missing_ok=True)  # of a process of the same number
        with log.open("x", encoding="utf-8") as file:
            for stream in (sys.stdout, sys.stderr):
                os.dup2(file.fileno(), stream.fileno())
        hold(sys.stdout.fileno())  # as long as this process lives, nobody removes it
    cast(io.TextIOWrapper, sys.stdout).reconfigure(line_buffering=True)  # lines show at once


def _end_with_parent() -> None:
    """Exit when the parent exits, since a killed command cannot dismiss its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(
    connection: Connection,
    environment: Mapping[str, str],
    store: Store,
    data: Path | None,
    checkpoint_every: float,
    live: Live,
) -> None:
    """Take configurations, train their runs and answer, until the pipe closes."""
    # A garbage collection would look at all that was imported, and so copy 40 MB of the server's
    # memory into this process. Every run ends with one.
    gc.freeze()
    os.environ.clear()  # it is the server's, from when that started
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command alone
    try:
        _print_to(_log_of(store, os.getpid()), store)
    except UserError as error:
        connection.send(Mistake(str(error)))
        return
    on_progress = sparsely(connection.send)
    while True:
        try:
            config: Config = connection.recv()
        except EOFError:
            return
        place = config, store, data, on_progress
        connection.send(attempt(run_in_store, *place, checkpoint_every, live))
