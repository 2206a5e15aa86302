"""The Ray engine in a real cluster that loses nodes and workers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.commandline import leftovers, runs_in
from helpers.ray_cluster import STEPS, Watcher, steps, until

from torture.processes import below
from twofold.discovery import with_neighbours
from twofold.errors import UserError
from twofold.experiments import ray_cluster, ray_engine
from twofold.experiments.config import Config, configure
from twofold.experiments.execution import execute
from twofold.experiments.local import LocalEngine
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
def test_a_cluster_without_a_free_core_is_waited_for_with_a_word(
    joined: Cluster,
    store: Store,
    config: Callable[[str], Config],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def hold(file: str) -> None:
        while Path(file).exists():
            time.sleep(0.1)

    said: list[str] = []

    def told() -> bool:
        said.append(capsys.readouterr().err)
        return "the 3 cores of the Ray cluster seem to be taken" in "".join(said)

    def release() -> None:
        until(told, "it is said")
        (folder / "taken").unlink()

    monkeypatch.setattr(ray_engine, "PATIENCE", 1.0)
    (folder / "taken").touch()
    held = [ray_engine.ray.remote(hold).remote(str(folder / "taken")) for _ in range(3)]
    until(lambda: ray_engine.ray.available_resources().get("CPU", 0) == 0, "all cores are taken")
    with meanwhile(release):
        ray_engine.RayEngine().run([config("er")], store, None, Watcher())
    assert len(store.folders()) == 1
    ray_engine.ray.get(held)


def test_no_gpu(joined: Cluster, store: Store, config: Callable[[str], Config]) -> None:
    with pytest.raises(UserError, match="no node of the Ray cluster has one"):
        ray_engine.RayEngine(gpus_per_run=0.5).run([config("er")], store, None, Watcher())


def test_nodes_of_a_cluster_tell_plugins_of_one_name_apart(tmp_path: Path) -> None:
    """A node that does not see the files writes them from the contents it was sent."""
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


def test_a_busy_machine_has_more_time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as slow to connect as it is to import Ray."""
    slow = "import time; time.sleep(2); print('ready', flush=True); time.sleep(3)"
    monkeypatch.setattr(ray_cluster, "ANSWER", 0.1)
    monkeypatch.setattr(ray_cluster, "PROBE", slow)
    ray_cluster._probe("auto")
    monkeypatch.setattr(
        ray_cluster, "PROBE", "print('ready', flush=True); import time; time.sleep(600)"
    )
    with pytest.raises(UserError, match="no Ray cluster at auto"):
        ray_cluster._probe("auto")


def test_an_address_where_something_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "ANSWER", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(UserError, match=f"no Ray cluster at {address}"):
            ray_cluster._probe(address)


def test_a_cluster_that_does_not_start_is_answered_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A busy machine takes longer than Ray waits, which then raises a plain Exception."""

    def fail(*_: object) -> None:
        raise Exception("The current node timed out during startup.\nMore lines.")

    monkeypatch.setattr(ray_cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_cluster.ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray_cluster, "_connect", fail)
    with (
        pytest.raises(UserError, match=r"^can't start a Ray cluster: .* during startup\.$"),
        ray_cluster.cluster(None, 1),
    ):
        pass
