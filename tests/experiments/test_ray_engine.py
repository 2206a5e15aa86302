"""The Ray engine on a real cluster of three nodes, all on this machine and on 127.0.0.1 only."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import Command, leftovers, one_line, process, runs_in, start

from twofold.discovery import with_neighbours
from twofold.errors import UserError
from twofold.experiments.config import Config, configure
from twofold.experiments.execution import Finished, execute
from twofold.experiments.local import LocalEngine
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

if importlib.util.find_spec("ray") is None:
    pytest.skip("no Ray: pip install -e '.[ray]'", allow_module_level=True)

from twofold.experiments import ray_cluster, ray_engine  # first: what Ray reads is set there

from ray.cluster_utils import Cluster  # isort: skip

pytestmark = pytest.mark.xdist_group("ray")

STEPS = 50  # of a run
NODE = {
    "num_cpus": 1,
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 80 * 2**20,
    "include_dashboard": False,
}

# A benchmark that needs no data, and routines to watch and to disturb its runs with.
PLUGIN = """
import os, signal, time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from twofold import Benchmark, Recipe, Routine
from twofold.errors import MissingDataError

FOLDER = Path({folder!r})


class Blobs(Recipe, name="blobs"):
    title, about, dataset, scenario = "Blobs", "made on the spot", None, "domain"
    tasks, offline_iterations = 2, 25

    @classmethod
    def build(cls, seed, folder=None, whitening="train", device="cpu"):
        random = torch.Generator().manual_seed(seed)
        def part(count):
            y = torch.arange(count) % 3
            return torch.randn(count, 8, generator=random) + y[:, None], y
        tasks = [(*part(60), *part(30)) for _ in range(cls.tasks)]
        return Benchmark.from_tensors(
            "blobs", tasks, model=lambda: nn.Linear(8, 3), offline_iterations=25
        )


def note(name, text):
    with (FOLDER / name).open("a") as file:
        file.write(text + "\\n")


@dataclass
class Traced(Routine, name="traced"):
    "Writes down who makes which step, and takes its time."
    run: int = 0
    seconds: float = 0.02

    def direct(self, g, step):
        note(f"run-{{self.run}}", f"{{os.getpid()}} {{25 * (step.task - 1) + step.iteration}}")
        time.sleep(self.seconds)
        while step.iteration > 10 and (FOLDER / "wait").exists():
            time.sleep(0.02)
        return g


@dataclass
class Mortal(Routine, name="mortal"):
    "Is killed so often, as by a kernel that has no memory left."
    times: int = 1

    def direct(self, g, step):
        deaths = FOLDER / f"deaths-{{self.times}}"
        if step.iteration == 5 and (not deaths.exists() or len(deaths.read_text()) < self.times):
            with deaths.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return g


class Picky(Blobs, name="picky"):
    "Needs data that a node lacks."

    @classmethod
    def build(cls, *given):
        import ray
        if ray.get_runtime_context().get_node_id() == (FOLDER / "without").read_text():
            raise MissingDataError("no data here")
        return super().build(*given)


class Broken(Routine, name="broken"):
    def direct(self, g, step):
        return g.no_such_thing
"""


class Watcher:
    """Writes down what it is told. A run must be started before it is anything else."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.running: set[int] = set()

    def started(self, index: int) -> None:
        assert index not in self.running
        self.running.add(index)

    def progressed(self, index: int, progress: Any) -> None:
        assert index in self.running

    def finished(self, index: int, finished: Finished) -> None:
        if finished.state == "there":
            self.told.append(("there", index))
        else:
            self._end("finished", index, finished.folder)

    def busy(self, index: int) -> None:
        self._end("busy", index)

    def retried(self, index: int, why: str) -> None:
        self._end("retried", index, why)

    def failed(self, index: int, why: str, log: Path) -> None:
        self._end("failed", index, why, log)

    def _end(self, word: str, index: int, *more: Any) -> None:
        self.running.remove(index)
        self.told.append((word, index, *more))

    def of(self, index: int) -> list[str]:
        return [word for word, which, *_ in self.told if which == index]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the plugin, and what its routines write down."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "blobs.py").write_text(PLUGIN.format(folder=str(folder)))
    return folder


@pytest.fixture(scope="module")
def rays_folder() -> Iterator[Path]:
    """For Ray's sockets, whose paths must be short, and its logs."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(rays_folder: Path) -> Iterator[Cluster]:
    """Three nodes of one core."""
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module")
def joined(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with this process connected to its first node."""
    with ray_cluster.cluster(cluster.address, None):
        yield cluster


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "out")
    store.prepare()
    return store


@pytest.fixture
def config(folder: Path) -> Callable[[str], Config]:
    def make(method: str) -> Config:
        plugins = [str(folder / "blobs.py")]
        return configure("blobs", method, batch_size=10, eval_size=30, plugins=plugins)

    return make


def until(condition: Callable[[], object], what: str, seconds: float = 150) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.05)


def steps(folder: Path, run: int) -> list[tuple[int, int]]:
    """Which process has made which steps of a run, in order."""
    file = folder / f"run-{run}"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(process), int(step)) for process, step in map(str.split, lines)]


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True)
    return [int(word) for word in listed.stdout.split()]


def below(pid: int) -> list[int]:
    """A process and all that it and its children have started."""
    return [pid, *(found for child in children(pid) for found in below(child))]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has ended meanwhile
        return ""


def running(pid: int) -> bool:
    """One that ended but was not waited for does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip() not in ("", "Z", "Zl")


def curves(run: Run) -> dict[str, bytes]:
    return {name: column.tobytes() for name, column in run.columns.items()}


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Do it in a thread, and complain of what goes wrong there."""
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            act()
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()
    assert not wrong, wrong


def test_a_lost_node(
    joined: Cluster,
    folder: Path,
    store: Store,
    config: Callable[[str], Config],
    tmp_path: Path,
) -> None:
    """Nothing is lost, nothing is made twice, and its run goes on elsewhere from its checkpoint."""
    configs = [config(f"er+traced(run={run})") for run in range(1, 6)]
    lost: list[int] = []  # the processes of the node

    def busy_node() -> Any:
        """One that is well into a run. It can't be the first, which the command is on."""
        at_work = {pid for run in range(1, 6) for pid, step in steps(folder, run) if step > 10}
        nodes = [n for n in joined.worker_nodes if at_work & set(below(raylet(n)))]
        return nodes[0] if nodes else None

    def lose_node() -> None:
        # Every run waits after some steps, so that no node can finish them all meanwhile.
        until(busy_node, "a run is on its way")
        node = busy_node()
        lost.extend(below(raylet(node)))
        for pid in lost:
            os.kill(pid, signal.SIGKILL)
        joined.remove_node(node, allow_graceful=False)  # so that it is waited for
        (folder / "wait").unlink()

    watcher = Watcher()
    (folder / "wait").touch()
    with meanwhile(lose_node):
        engine = ray_engine.RayEngine(checkpoint_every=0)  # after every iteration
        engine.run(configs, store, None, watcher)

    finished = [index for word, index, *_ in watcher.told if word == "finished"]
    assert sorted(finished) == [0, 1, 2, 3, 4]
    (resumed,) = {index for word, index, *_ in watcher.told if word == "retried"}
    assert all("node was lost" in told[2] for told in watcher.told if told[0] == "retried")
    assert {word for word, *_ in watcher.told} <= {"finished", "retried", "busy"}

    made = steps(folder, resumed + 1)
    before = [step for pid, step in made if pid in lost]
    after = [step for pid, step in made if pid not in lost]
    assert before == list(range(1, len(before) + 1))
    assert after == list(range(after[0], STEPS + 1))
    assert after[0] - before[-1] in (0, 1), "at most the iteration it was killed in is made again"

    assert len(runs_in(store.folder)) == len(configs)
    assert leftovers(store.folder) == []
    local = Store(tmp_path / "local")
    local.prepare()
    LocalEngine(workers=2).run(configs, local, None, Watcher())
    for here, there in zip(local.folders(), store.folders(), strict=True):
        assert here.name == there.name
        assert curves(Run.load(here)) == curves(Run.load(there))
        assert (here / "config.json").read_bytes() == (there / "config.json").read_bytes()


def raylet(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


def test_workers_that_die_and_runs_that_fail(
    joined: Cluster, store: Store, config: Callable[[str], Config]
) -> None:
    configs = [config(f"er+{name}") for name in ("mortal", "mortal(times=2)", "broken", "traced")]
    watcher = Watcher()
    ray_engine.RayEngine(checkpoint_every=0).run(configs, store, None, watcher)
    assert watcher.of(0) == ["retried", "finished"]
    assert watcher.of(1) == ["retried", "failed"]
    assert watcher.of(2) == ["failed"]
    assert watcher.of(3) == ["finished"]
    reasons = {
        index: (why, log.read_text())
        for word, index, why, log, *_ in (told for told in watcher.told if told[0] == "failed")
    }
    assert "worker died" in reasons[1][0]
    assert "no_such_thing" in reasons[2][0]
    assert "Traceback" in reasons[2][1]

    again = Watcher()
    ray_engine.RayEngine().run([configs[0], configs[3]], store, None, again)
    assert (again.of(0), again.of(1)) == (["there"], ["there"])


def test_a_store_that_nodes_do_not_see(
    joined: Cluster,
    store: Store,
    config: Callable[[str], Config],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is made there, plugin and all, and sent here, where it is as any other."""

    @contextmanager
    def elsewhere(store: Store) -> Iterator[Path]:
        yield tmp_path / "not" / "there"

    sent: list[Run] = []
    renamed = ray_engine._renamed
    monkeypatch.setattr(ray_engine, "_token", elsewhere)
    monkeypatch.setattr(
        ray_engine, "_renamed", lambda run, config: sent.append(run) or renamed(run, config)
    )
    wanted = config("er+traced(run=11)")
    watcher = Watcher()
    ray_engine.RayEngine().run([wanted], store, None, watcher)
    assert watcher.of(0) == ["finished"]
    assert len(sent) == 1, "it was not made in the store"
    assert sent[0].config.plugins != wanted.plugins
    run, here = Run.load(store.folders()[0]), execute(wanted)
    assert store.find(wanted) == store.folders()[0]
    assert run.config.plugins == wanted.plugins
    assert run.summary["command"] == here.summary["command"]
    assert run.summary["identity"] == wanted.identity()
    assert curves(run) == curves(here)


def test_a_mistake_that_only_tasks_find(joined: Cluster, store: Store, folder: Path) -> None:
    plugins = [str(folder / "blobs.py")]
    wrong = configure("blobs", "er", batch_size=61, plugins=plugins)
    with pytest.raises(UserError, match="batch size 61"):
        ray_engine.RayEngine().run([wrong], store, None, Watcher())


@pytest.mark.parametrize("lacking", ["one", "all"])
def test_a_node_without_data_is_left_out_and_named(
    lacking: str, joined: Cluster, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [node["NodeID"] for node in ray_engine.ray.nodes() if node["Alive"]]
    (folder / "without").write_text(nodes[0])
    if lacking == "all":
        there = [node for node in ray_engine.ray.nodes() if node["NodeID"] == nodes[0]]
        monkeypatch.setattr(ray_engine.ray, "nodes", lambda: there)
    plugins = [str(folder / "blobs.py")]
    configs = [
        configure("picky", "er", batch_size=10, eval_size=30, seed=seed, plugins=plugins)
        for seed in range(4)
    ]
    watcher = Watcher()
    if lacking == "all":
        with pytest.raises(UserError, match=r"no Ray node has the data: .*: no data here"):
            ray_engine.RayEngine().run(configs, store, None, watcher)
        return
    ray_engine.RayEngine().run(configs, store, None, watcher)
    assert len(store.folders()) == 4
    why = {more[0] for word, _, *more in watcher.told if word == "retried"}
    assert why == {f"node {socket.gethostname()} is left out: no data here"}


@pytest.mark.slow
def test_a_head_that_is_killed(folder: Path, tmp_path: Path) -> None:
    """One line says so, soon, and the same command continues."""
    method = "er+traced(run=41,seconds=600)"
    ours: list[int] = []
    begun = start(
        *("run", "blobs", "er", method, "--batch-size", "10", "--plugin", folder / "blobs.py"),
        *("--out", tmp_path / "out", "--json", "--engine", "ray", "--workers", "1"),
        env={**os.environ, "HOME": str(tmp_path)},
    )
    try:
        until(lambda: len(steps(folder, 41)) == 1, "the run is on its way")
        ours = below(begun.pid)
        head = next(pid for pid in ours if "gcs_server" in command_of(pid))
        os.kill(head, signal.SIGKILL)
        _, err = begun.communicate(timeout=60)
    finally:
        for pid in [*ours, begun.pid]:  # Ray's own processes notice a lost head after a minute
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert begun.returncode == 2, err
    assert err.splitlines()[-1].startswith("twofold: the Ray cluster is gone")
    assert not [line for line in err.splitlines() if "ray" in line and "twofold" not in line], err
    assert len(runs_in(tmp_path / "out")) == 1


def test_no_gpu(joined: Cluster, store: Store, config: Callable[[str], Config]) -> None:
    with pytest.raises(UserError, match="no node of the Ray cluster has one"):
        ray_engine.RayEngine(gpus_per_run=0.5).run([config("er")], store, None, Watcher())


@pytest.mark.parametrize("where", [pytest.param("joined", marks=pytest.mark.slow), "own"])
def test_ctrl_c(where: str, cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    """One run is complete, one goes on for ever; a cluster of our own ends with us.

    In the cluster that we join, another kills its workers: Ray has much to say about it, but not on
    standard output.
    """
    first, last = {"joined": (21, 22), "own": (31, 32)}[where]
    options = ["--address", cluster.address] if where == "joined" else ["--workers", "2"]
    methods = [f"er+traced(run={first})", f"er+traced(run={last},seconds=600)"]
    if where == "joined":
        methods.insert(1, "er+mortal(times=3)")
    begun = start(
        *("run", "blobs", *methods, "--batch-size", "10", "--plugin", folder / "blobs.py"),
        *("--out", tmp_path / "out", "--json", "--engine", "ray", *options),
        env={**os.environ, "HOME": str(tmp_path)},  # where Ray puts the key of a new cluster
    )
    try:
        assert begun.stdout is not None
        line = begun.stdout.readline()
        assert json.loads(line)["method"] == methods[0]
        until(lambda: len(steps(folder, last)) == 1, "the last run is on its way")
        if where == "joined":
            deaths = folder / "deaths-3"
            until(lambda: deaths.exists() and deaths.read_text() == "xx", "its worker died twice")
        ours = {*below(begun.pid), steps(folder, last)[0][0]}
        os.killpg(begun.pid, signal.SIGINT)
        out, err = begun.communicate(timeout=30)
    finally:
        if begun.poll() is None:
            os.killpg(begun.pid, signal.SIGKILL)
    assert begun.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    if where == "joined":
        assert "er+mortal(times=3) seed 142: its worker died; trying once more" in err
    assert one_line(err[err.rindex("twofold: ") :])
    until(lambda: not any(map(running, ours)), "none of our processes is left", 30)
    assert len(runs_in(tmp_path / "out")) == 1
    assert cluster.remaining_processes_alive()


def test_an_address_where_nothing_is(folder: Path, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = process(
        *("run", "blobs", "er", "--batch-size", "10", "--plugin", folder / "blobs.py"),
        *("--out", tmp_path, "--engine", "ray", "--address", "127.0.0.1:1"),
    )
    assert done.code == 2
    assert "no Ray cluster at 127.0.0.1:1" in one_line(done.err)
    assert done.out == ""
    assert time.monotonic() - begin < 30


def test_an_address_where_something_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "ANSWER", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(UserError, match=f"no Ray cluster at {address}"):
            ray_cluster._probe(address)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--address 127.0.0.1:1", "belong to the engine ray"),
        ("--gpus-per-run 0.5", "belong to the engine ray"),
        ("--engine ray --per-gpu 2", "set gpus per run"),
        ("--engine ray --gpus-per-run 2", "at most 1"),
    ],
)
def test_options_that_do_not_go_together(
    twofold: Command, folder: Path, tmp_path: Path, options: str, complaint: str
) -> None:
    more = ("--plugin", folder / "blobs.py", "--out", tmp_path / "out", *options.split())
    done = twofold("run", "blobs", "er", *more)
    assert done.code == 2
    assert complaint in one_line(done.err)


def test_without_ray(
    twofold: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "twofold.experiments.ray_engine")
    more = ("--plugin", folder / "blobs.py", "--out", tmp_path / "out", "--engine", "ray")
    done = twofold("run", "blobs", "er", *more)
    assert done.code == 2
    way = "in twofold's folder, pip install -c constraints.txt -e '.[ray]'"
    assert one_line(done.err) == f"the ray engine needs Ray: {way}"


def test_nodes_of_a_cluster_tell_plugins_of_one_name_apart(tmp_path: Path) -> None:
    """Where a node does not see the files, it writes them down from what it was sent."""
    names = ("scaled-d", "scaled-e")
    for name in names:
        (tmp_path / name).mkdir()
    text = (
        "from twofold import Routine\n"
        "class Scaled(Routine, name={!r}):\n    def after_step(self, step): pass\n"
    )
    for name in names:
        (tmp_path / name / "scaled.py").write_text(text.format(name))
    plugins = [str(tmp_path / name / "scaled.py") for name in names]
    config = configure("rotated-mnist", "er+scaled-d+scaled-e", plugins=plugins)
    sent = {plugin: with_neighbours(plugin) for plugin in plugins}
    errand = ray_engine._Errand(tmp_path, tmp_path / "token", None, sent, 30.0)
    (tmp_path / "apart").mkdir()
    there = errand._with_plugins_in(tmp_path / "apart", config)
    assert there.identity() == config.identity()


def test_a_node_without_the_files_gets_the_modules_beside_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "beside_ray.py").write_text("FACTOR = 0.5\n")
    (here / "plugin.py").write_text(
        "from beside_ray import FACTOR\nfrom twofold import Routine\n"
        "class Beside(Routine, name='beside'):\n"
        "    def direct(self, g, step): return FACTOR * g\n"
    )
    plugin = str(here / "plugin.py")
    monkeypatch.setattr(sys, "path", [*sys.path])
    config = configure("rotated-mnist", "er+beside", plugins=[plugin])
    sent = {plugin: with_neighbours(plugin)}
    errand = ray_engine._Errand(tmp_path, tmp_path / "token", None, sent, 30.0)
    shutil.rmtree(here)
    sys.path.remove(str(here))
    monkeypatch.delitem(sys.modules, "beside_ray")
    there = errand._with_plugins_in(tmp_path / "apart", config)
    assert there.identity() == config.identity()
    assert Path(sys.modules["beside_ray"].__file__ or "").is_relative_to(tmp_path / "apart")
