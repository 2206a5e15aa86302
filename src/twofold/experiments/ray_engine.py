"""The Ray engine: the same runs on many machines, with one Ray task per run.

A task that sees the store's folder, for example on a shared disk, works in it as a local worker
does: it claims the run, continues from its checkpoint and saves it. A task that does not see the
folder trains the run from the start and sends it to the command, which saves it. So all runs end up
in one store.
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

from twofold.discovery import import_file, sources_digest, with_neighbours
from twofold.errors import MissingDataError, UserError
from twofold.experiments.config import Config
from twofold.experiments.engine import (
    Answer,
    Ledger,
    Returned,
    Unfit,
    Watcher,
    attempt,
    sparsely,
)
from twofold.experiments.execution import (
    NOBODY,
    Busy,
    Finished,
    OnProgress,
    execute,
    run_in_store,
)
from twofold.experiments.live import Live
from twofold.experiments.local import ONE_THREAD
from twofold.experiments.ray_cluster import LOOK_EVERY, Head, Hushed, Nodes, cluster
from twofold.experiments.runs import Run
from twofold.experiments.store import Store, writing
from twofold.locks import try_lock
from twofold.results import Progress

# isort: split
# Imported after ray_cluster, which sets variables that Ray reads when it is imported.
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

TELL_EVERY = 1.0  # seconds between two messages of one run: a thousand may be running
PATIENCE = 60.0  # seconds until it is said that no run could start
QUEUED = 2  # tasks submitted per task that can run, so that no node idles


@dataclass
class RayEngine:
    """An engine that trains runs on the nodes of a Ray cluster.

    address: the address of a running cluster, such as 10.0.0.1:6379, or auto; None starts one here.
    workers: the largest number of runs at once; None for as many as there are cores, or shares of
        GPUs.
    gpus_per_run: the share of a GPU, such as 0.25 for four runs per GPU; 0 for runs without a GPU.
    checkpoint_every: seconds between two checkpoints of a run.
    live: the sinks that receive the curves of running runs, from the nodes.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_run: float = 0.0
    checkpoint_every: float = 30.0
    live: Live = NOBODY

    def run(
        self, configs: Sequence[Config], store: Store, data: Path | None, watcher: Watcher
    ) -> None:
        ledger = Ledger(configs, store, watcher)
        if not ledger:
            return
        used = {plugin for config in configs for plugin in config.plugins}
        plugins = {plugin: with_neighbours(plugin) for plugin in used}
        output: Any = Hushed(sys.stdout)
        with contextlib.redirect_stdout(output), cluster(self.address, self.workers):
            self._check(configs)
            with _token(store) as token:
                errand = _Errand(
                    store.folder, token, data, plugins, self.checkpoint_every, self.live
                )
                _Study(configs, store, watcher, ledger, errand, self).run()

    def _check(self, configs: Sequence[Config]) -> None:
        """Raise UserError for runs that would wait for a GPU forever."""
        if self.gpus_per_run and not ray.cluster_resources().get("GPU"):
            raise UserError("gpus per run needs a GPU, and no node of the Ray cluster has one")
        if not self.gpus_per_run and any(config.device.startswith("cuda") for config in configs):
            raise UserError("Ray assigns the GPUs: set gpus per run to 1 instead of a device")

    def room(self, resources: dict[str, float]) -> int:
        """Return how many tasks may be submitted to a cluster with these resources."""
        cores = resources.get("CPU", 0.0)
        if self.gpus_per_run:
            cores = min(cores, resources.get("GPU", 0.0) / self.gpus_per_run)
        room = QUEUED * max(1, int(cores))
        return room if self.workers is None else min(room, self.workers)


@dataclass(frozen=True)
class _Errand:
    """The command's store and files, which tasks need besides the run."""

    store: Path
    token: Path  # a file in the store, which a task sees if the folder is shared
    data: Path | None
    plugins: dict[str, dict[str, bytes]]  # the texts of each, for nodes without the files
    checkpoint_every: float
    live: Live = field(default_factory=Live)
    folder: Path = field(default_factory=Path.cwd)  # the start of relative paths
    places: dict[str, str] = field(default_factory=lambda: _places())
    twofold: str = field(default_factory=lambda: _code())

    def train(
        self, config: Config, identity: str, on_progress: OnProgress
    ) -> Finished | Busy | Returned | Unfit:
        if _code() != self.twofold:
            raise UserError(
                f"node {socket.gethostname()} has twofold {_code()}, "
                f"but this is {self.twofold}: install the same everywhere"
            )
        try:
            return self._train(config, identity, on_progress)
        except MissingDataError as error:
            node = ray.get_runtime_context().get_node_id()
            return Unfit(node, socket.gethostname(), str(error))

    def _train(
        self, config: Config, identity: str, on_progress: OnProgress
    ) -> Finished | Busy | Returned:
        with contextlib.suppress(OSError):
            os.chdir(self.folder)
        for name, folder in self.places.items():
            if Path(folder).is_dir():
                os.environ.setdefault(name, folder)
        data = self.data if self.data is not None and self.data.exists() else None
        if self._sees_all(config, identity):
            store = Store(self.store)
            place = config, store, data, on_progress
            return run_in_store(*place, self.checkpoint_every, self.live)
        with tempfile.TemporaryDirectory(prefix="twofold-") as folder:
            own_config = self._with_plugins_in(Path(folder), config)
            live = self.live.without_folders()  # the command writes TensorBoard's files itself
            return Returned(execute(own_config, data, on_progress, live=live))

    def _sees_all(self, config: Config, identity: str) -> bool:
        """Tell whether this node sees the store and the same plugins as the command."""
        if not self.token.exists():
            return False
        for plugin in config.plugins:
            for name, text in self.plugins[plugin].items():
                file = Path(plugin).parent / name
                if not file.is_file() or file.read_bytes() != text:
                    return False
            import_file(plugin)
        return config.identity() == identity

    def _with_plugins_in(self, folder: Path, config: Config) -> Config:
        files = [folder / str(k) / Path(plugin).name for k, plugin in enumerate(config.plugins)]
        for file, plugin in zip(files, config.plugins, strict=True):
            for name, text in self.plugins[plugin].items():
                place = file.parent / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text)
            import_file(str(file))
        return dataclasses.replace(config, plugins=[str(file) for file in files])


def _code() -> str:
    """Return the version and the digest of the sources of this process's twofold."""
    return f"{version('twofold')} (sources {sources_digest()})"


def _places() -> dict[str, str]:
    """Return the folders in which the command looks for datasets; a node's own settings win."""
    names = ("TWOFOLD_DATA", "TWOFOLD_CACHE")
    return {name: os.environ[name] for name in names if name in os.environ}


class _Board:
    """An actor on the command's machine that collects the progress of tasks."""

    def __init__(self) -> None:
        self._latest: dict[int, _Note] = {}

    def write(self, index: int, note: _Note) -> None:
        self._latest[index] = note

    def take(self) -> dict[int, _Note]:
        latest, self._latest = self._latest, {}
        return latest


class _Note(NamedTuple):
    attempt: int
    progress: Progress | None  # None at the start of a task


def _task(
    errand: _Errand, config: Config, identity: str, write: Callable[[Progress | None], None]
) -> Answer:
    """Train a run on a node. `identity` is the run's identity on the command's machine."""
    write(None)
    return attempt(errand.train, config, identity, sparsely(write, TELL_EVERY))


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
        self._pending: dict[Any, int] = {}  # the run of each task
        self._attempts: Counter[int] = Counter()
        self._started: set[int] = set()
        self._unfit: dict[str, str] = {}  # nodes without the data, and why
        self._places: dict[Any, str] = {}  # the nodes of tasks, if they were chosen here
        self._head, self._nodes = Head(), Nodes()
        self._began, self._moving = time.monotonic(), False
        # The board is on this process's node, since other nodes may be lost.
        affinity = NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        board: Any = ray.remote(_Board)
        self._board = board.options(
            num_cpus=0, max_restarts=-1, scheduling_strategy=affinity
        ).remote()
        self._news = self._board.take.remote()
        self._task = ray.remote(
            num_cpus=1,
            num_gpus=engine.gpus_per_run,
            max_retries=0,  # the ledger counts retries and tells the watcher
            runtime_env={"env_vars": ONE_THREAD},
        )(_task)

    def run(self) -> None:
        try:
            while self._ledger or self._pending:
                self._head.check()
                self._submit()
                for task in self._ended():
                    self._settle(task)
                self._read()
                self._say_if_waiting()
        finally:
            self._nodes.close()
            for task in [] if self._head.lost else self._pending:
                ray.cancel(task, force=True)

    def _say_if_waiting(self) -> None:
        """Say once that no run has started, since all cores of the cluster are taken."""
        if self._started or self._moving or time.monotonic() - self._began < PATIENCE:
            return
        self._moving = True
        cores = int(self._nodes.resources.get("CPU", 0))
        print(
            f"no run has started for {PATIENCE:.0f} seconds: the {cores} cores of the Ray cluster "
            "seem to be taken; still waiting",
            file=sys.stderr,
        )

    def _submit(self) -> None:
        """Submit as many runs as there is room for."""
        room = self._engine.room(self._nodes.resources)
        while len(self._pending) < room and (index := self._ledger.next()) is not None:
            config = self._configs[index]
            self._attempts[index] += 1
            write = functools.partial(_write, self._board, index, self._attempts[index])
            node = self._fit_node() if self._unfit else None
            strategy = (
                "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=False)
            )
            start = self._task.options(scheduling_strategy=strategy)
            task = start.remote(self._errand, self._placed(config), config.identity(), write)
            self._pending[task] = index
            if node is not None:
                self._places[task] = node

    def _fit_node(self) -> str:
        """Return the node with the fewest tasks, of those that have the data."""
        nodes = [node["NodeID"] for node in self._nodes.all if node["Alive"] and _cores(node)]
        fit = [node for node in nodes if node not in self._unfit]
        if not fit:
            raise UserError(f"no Ray node has the data: {'; '.join(self._unfit.values())}")
        counts = Counter(self._places.get(task) for task in self._pending)
        return str(min(fit, key=lambda node: counts[node]))

    def _placed(self, config: Config) -> Config:
        """Place a run on the GPU, if it has a share of one. Ray shows a task only its own GPU."""
        return dataclasses.replace(config, device="cuda") if self._engine.gpus_per_run else config

    def _ended(self) -> list[Any]:
        if not self._pending:  # different processes train all remaining runs
            time.sleep(LOOK_EVERY)
            return []
        ended, _ = ray.wait(list(self._pending), num_returns=1, timeout=LOOK_EVERY)
        return ended

    def _settle(self, task: Any) -> None:
        index = self._pending.pop(task)
        self._places.pop(task, None)
        self._start(index)
        self._moving = True
        try:
            answer: Answer = ray.get(task)
        except (NodeDiedError, ObjectLostError, LocalRayletDiedError) as error:
            self._started.discard(index)
            self._ledger.died(index, "its node was lost", f"{error}\n", fault=False)
        except (RayTaskError, RaySystemError) as error:  # `attempt` catches a run's own errors
            why = str(error).strip().splitlines()[-1]
            raise UserError(f"a Ray node can't train runs: {why} (is twofold there?)") from None
        except RayError as error:
            self._started.discard(index)
            self._ledger.died(index, "its worker died", f"{error}\n")
        else:
            if isinstance(answer, Returned):
                config = self._placed(self._configs[index])
                answer = Returned(_renamed(answer.run, config))
            self._started.discard(index)
            if isinstance(answer, Unfit):
                self._unfit[answer.node] = f"{answer.host}: {answer.why}"
            self._ledger.answered(index, answer)

    def _start(self, index: int) -> None:
        if index not in self._started:
            self._started.add(index)
            self._watcher.started(index)

    def _read(self) -> None:
        """Read the messages of tasks, except for those about an attempt that has ended."""
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
                if note.progress is not None:
                    self._watcher.progressed(index, note.progress)


def _cores(node: dict[str, Any]) -> bool:
    return bool(node["Resources"].get("CPU", 0) >= 1)


def _renamed(run: Run, config: Config) -> Run:
    """Return a run with the command's own paths, since plugins have different paths on a node."""
    summary = {**run.summary, "command": config.command()}
    return dataclasses.replace(run, config=config, summary=summary)


def _write(board: Any, index: int, attempt: int, progress: Progress | None) -> None:
    board.write.remote(index, _Note(attempt, progress))


@contextmanager
def _token(store: Store) -> Iterator[Path]:
    """Yield a file by which nodes tell whether they see the store; it is locked while it counts."""
    token = store.folder / ".work" / f"{uuid.uuid4().hex}.token"
    with writing(store.folder):
        token.parent.mkdir(parents=True, exist_ok=True)
    with try_lock(token):
        yield token
