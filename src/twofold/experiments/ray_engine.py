"""The Ray engine: the same runs on many machines, one Ray task a run.

A task that sees the store's folder, as on a shared disk, works in it as a local worker does: it
claims the run, goes on from its checkpoint, saves it. One that does not see it makes the run from
its start and sends it back, and the command saves it. So all runs arrive in the one store.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import socket
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from twofold.discovery import import_file
from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.engine import Ledger, Status, Watcher, attempt, sparsely
from twofold.experiments.execution import Outcome, Report, execute, make_in_store
from twofold.experiments.local import ONE_THREAD
from twofold.experiments.ray_cluster import Hushed, cluster
from twofold.experiments.runs import Run
from twofold.experiments.store import Store, writing

# isort: split
# Only now: ray_cluster sets what Ray reads when it is imported.
import ray
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    RayError,
    RaySystemError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

TELL_EVERY = 1.0  # seconds between two words of one run: a thousand may be running
LOOK_EVERY = 0.5  # seconds between two looks at what they said
QUEUED = 2  # tasks submitted for each that can run: nobody idles, and Ray isn't flooded


@dataclass
class RayEngine:
    """Makes runs on the nodes of a Ray cluster.

    address: of a running cluster, such as 10.0.0.1:6379, or auto; None starts one here.
    workers: at most so many runs at once; None for as many as there are cores, or shares of GPUs.
    gpus_per_run: such as 0.25, which puts four runs on each GPU; 0 for runs without.
    checkpoint_every: seconds between two checkpoints of a run.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_run: float = 0.0
    checkpoint_every: float = 30.0

    def run(
        self, configs: Sequence[Config], store: Store, data: Path | None, watcher: Watcher
    ) -> None:
        ledger = Ledger(configs, store, watcher)
        if not ledger:
            return
        used = {plugin for config in configs for plugin in config.plugins}
        plugins = {plugin: Path(plugin).read_bytes() for plugin in used}
        hushed: Any = Hushed(sys.stdout)
        with contextlib.redirect_stdout(hushed), cluster(self.address, self.workers):
            self._check(configs)
            with _token(store) as token:
                errand = _Errand(store.folder, token, data, plugins, self.checkpoint_every)
                _Study(configs, store, watcher, ledger, errand, self).run()

    def _check(self, configs: Sequence[Config]) -> None:
        """What Ray would have us wait for in vain."""
        if self.gpus_per_run and not ray.cluster_resources().get("GPU"):
            raise UserError("--gpus-per-run needs a GPU, and no node of the Ray cluster has one")
        if not self.gpus_per_run and any(config.device.startswith("cuda") for config in configs):
            raise UserError("Ray lends out the GPUs: say --gpus-per-run 1 instead of --device")

    def room(self) -> int:
        """How many tasks may be submitted at a time. Nodes come and go, so it is asked again."""
        there = ray.cluster_resources()
        at_once = there.get("CPU", 0.0)
        if self.gpus_per_run:
            at_once = min(at_once, there.get("GPU", 0.0) / self.gpus_per_run)
        room = QUEUED * max(1, int(at_once))
        return room if self.workers is None else min(room, self.workers)


@dataclass(frozen=True)
class _Errand:
    """All that tasks need to know, besides the run: the command's store and files."""

    store: Path
    token: Path  # a file there that a task sees if the folder is shared
    data: Path | None
    plugins: dict[str, bytes]  # their text, for nodes that don't have the files
    checkpoint_every: float
    folder: Path = field(default_factory=Path.cwd)  # the one that relative paths start from
    places: dict[str, str] = field(default_factory=lambda: _places())
    twofold: str = field(default_factory=lambda: version("twofold"))

    def make(self, config: Config, identity: str, report: Report) -> Outcome | Run:
        if version("twofold") != self.twofold:
            raise UserError(
                f"node {socket.gethostname()} has twofold {version('twofold')}, "
                f"but this is {self.twofold}: install the same everywhere"
            )
        with contextlib.suppress(OSError):
            os.chdir(self.folder)
        for name, folder in self.places.items():
            if Path(folder).is_dir():
                os.environ.setdefault(name, folder)
        data = self.data if self.data is not None and self.data.exists() else None
        if self.token.exists() and config.identity() == identity:  # it sees the plugins, too
            return make_in_store(config, Store(self.store), data, report, self.checkpoint_every)
        with tempfile.TemporaryDirectory(prefix="twofold-") as apart:
            return execute(self._with_plugins_in(Path(apart), config), data, report)

    def _with_plugins_in(self, folder: Path, config: Config) -> Config:
        files = [folder / str(k) / Path(plugin).name for k, plugin in enumerate(config.plugins)]
        for file, plugin in zip(files, config.plugins, strict=True):
            file.parent.mkdir()
            file.write_bytes(self.plugins[plugin])
            import_file(str(file))
        return dataclasses.replace(config, plugins=[str(file) for file in files])


def _places() -> dict[str, str]:
    """Where the command looks for datasets, unless a node has its own word on it."""
    names = ("TWOFOLD_DATA", "TWOFOLD_CACHE")
    return {name: os.environ[name] for name in names if name in os.environ}


class _Board:
    """An actor beside the command on which tasks write how far they are."""

    def __init__(self) -> None:
        self._latest: dict[int, _Note] = {}

    def write(self, index: int, note: _Note) -> None:
        self._latest[index] = note

    def take(self) -> dict[int, _Note]:
        latest, self._latest = self._latest, {}
        return latest


class _Note(NamedTuple):
    attempt: int
    status: Status | None  # none yet when it starts


def _task(
    errand: _Errand, config: Config, identity: str, write: Callable[[Status | None], None]
) -> tuple[str, Any]:
    """What a node does. `identity` is the run's on the command's machine."""
    write(None)
    report = sparsely(write, TELL_EVERY)
    return attempt(lambda: errand.make(config, identity, report))


class _Study:
    """All runs of a list, as tasks of the cluster that this process is connected to."""

    def __init__(
        self,
        configs: Sequence[Config],
        store: Store,
        watcher: Watcher,
        ledger: Ledger,
        errand: _Errand,
        engine: RayEngine,
    ) -> None:
        self._configs, self._store, self._watcher = configs, store, watcher
        self._ledger, self._errand, self._engine = ledger, errand, engine
        self._pending: dict[Any, int] = {}  # which run a task makes
        self._attempts: Counter[int] = Counter()
        self._started: set[int] = set()
        # Where this process is, for as long as it is: other nodes may be lost.
        beside = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        board: Any = ray.remote(_Board)
        self._board = board.options(
            num_cpus=0, max_restarts=-1, scheduling_strategy=beside
        ).remote()
        self._news = self._board.take.remote()
        self._task = ray.remote(_task).options(
            num_cpus=1,
            num_gpus=engine.gpus_per_run,
            max_retries=0,  # we count ourselves, and tell the watcher
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": ONE_THREAD},
        )

    def run(self) -> None:
        try:
            while self._ledger or self._pending:
                self._submit()
                for task in self._ended():
                    self._settle(task)
                self._read()
        finally:
            for task in self._pending:
                ray.cancel(task, force=True)

    def _submit(self) -> None:
        """As many as there is room for."""
        room = self._engine.room()
        while len(self._pending) < room and (index := self._ledger.next()) is not None:
            config = self._configs[index]
            self._attempts[index] += 1
            write = functools.partial(_write, self._board, index, self._attempts[index])
            task = self._task.remote(self._errand, self._placed(config), config.identity(), write)
            self._pending[task] = index

    def _placed(self, config: Config) -> Config:
        """On the GPU, of which Ray shows a task only its own, if it has one."""
        return dataclasses.replace(config, device="cuda") if self._engine.gpus_per_run else config

    def _ended(self) -> list[Any]:
        if not self._pending:  # all that is left is claimed by others
            time.sleep(LOOK_EVERY)
            return []
        ended, _ = ray.wait(list(self._pending), num_returns=1, timeout=LOOK_EVERY)
        return ended

    def _settle(self, task: Any) -> None:
        index = self._pending.pop(task)
        self._start(index)
        try:
            word, what = ray.get(task)
        except (NodeDiedError, ObjectLostError, LocalRayletDiedError) as error:
            self._started.discard(index)
            self._ledger.died(index, "its node was lost", f"{error}\n", fault=False)
        except (RayTaskError, RaySystemError) as error:  # not of the run: `attempt` catches those
            why = str(error).strip().splitlines()[-1]
            raise UserError(f"a Ray node can't make runs: {why} (is twofold there?)") from None
        except RayError as error:
            self._started.discard(index)
            self._ledger.died(index, "its worker died", f"{error}\n")
        else:
            if isinstance(what, Run):
                what = self._save(what, self._placed(self._configs[index]))
            self._started.discard(index)
            self._ledger.answered(index, word, what)

    def _save(self, run: Run, config: Config) -> Outcome:
        """A run from a node that doesn't see the store, nor our files: they have other names."""
        summary = {**run.summary, "command": config.command()}
        folder = self._store.save(dataclasses.replace(run, config=config, summary=summary))
        return Outcome("made", summary, folder)

    def _start(self, index: int) -> None:
        if index not in self._started:
            self._started.add(index)
            self._watcher.started(index)

    def _read(self) -> None:
        """What the tasks have written, unless it is about an attempt that is over."""
        if not ray.wait([self._news], timeout=0)[0]:
            return
        try:
            news: dict[int, _Note] = ray.get(self._news)
        except RayError:  # the board was lost, and is restarted
            news = {}
        self._news = self._board.take.remote()
        running = set(self._pending.values())
        for index, note in news.items():
            if index in running and note.attempt == self._attempts[index]:
                self._start(index)
                if note.status is not None:
                    self._watcher.progressed(index, note.status)


def _write(board: Any, index: int, attempt: int, status: Status | None) -> None:
    board.write.remote(index, _Note(attempt, status))


@contextmanager
def _token(store: Store) -> Iterator[Path]:
    token = store.folder / ".work" / f"{uuid.uuid4().hex}.token"
    with writing(store.folder):
        token.parent.mkdir(parents=True, exist_ok=True)
        token.touch()
    try:
        yield token
    finally:
        token.unlink(missing_ok=True)
