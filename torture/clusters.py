"""Kills of the head and of the nodes of Ray clusters, in the middle of a study."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torture import toy
from torture.outcome import NotStartedError, Outcome, bad
from torture.processes import Patience, below, command_of, ended, kill_all
from twofold import run
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

PLUGIN = str(Path(__file__).parent / "blobs.py")
METHODS = ("er+slow", "er+gem+slow")
SEEDS = (142, 152)
PATIENCE = 300.0  # seconds until a command must have begun to train, and then have ended
ATTEMPTS = 3  # to start a cluster
AFTERWARDS = 30.0  # seconds that Ray's processes may live after their command
NODE = {
    "num_cpus": 1,
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 80 * 2**20,
    "include_dashboard": False,
}
expected: dict[str, dict[str, bytes]] = {}  # the curves of undisturbed runs by identity


def ray_head(chance: random.Random, folder: Path) -> Outcome:
    """Kill the head of the cluster that a command has started."""
    with _command(folder, "--engine", "ray", "--workers", "2") as command:
        if not _until(lambda: _training(folder), command):
            said = _said(command)
            if "can't start a Ray cluster" in said:  # there is no head to kill
                raise NotStartedError(said.strip())
            return Outcome(badly=f"no run has started: {said}")
        time.sleep(chance.uniform(0, 2))
        ours = below(command.pid)
        kill_all(pid for pid in ours if "gcs_server" in command_of(pid))
        said = _said(command)
        code = command.returncode
        gone = code == 0 or (code == 2 and "the Ray cluster is gone" in said)
        badly = "" if gone else bad(code, said, good=[])
        left = [pid for pid in ours if pid != command.pid]
        if not ended(left, AFTERWARDS):
            names = {command_of(pid)[:60].replace("\0", " ") for pid in left} - {""}
            badly = badly or f"left behind: {names}"
            kill_all(left)
    return _finish(folder, Outcome(badly=badly or bad(code, said)))


def ray_node(chance: random.Random, folder: Path) -> Outcome:
    """Kill a node of a cluster of three, with everything on it, and start a new one."""
    # Ray starts threads, and a process with threads must not fork, as other kinds do.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        badly = pool.submit(_lose_nodes, chance, folder).result()
    return _finish(folder, Outcome(badly=badly))


def _lose_nodes(chance: random.Random, folder: Path) -> str:
    with (
        _rays_folder(),
        three_nodes() as cluster,
        _command(folder, "--engine", "ray", "--address", cluster.address) as command,
    ):
        if not _until(lambda: _training(folder), command):
            return f"no run has started: {_said(command)}"
        for _ in range(chance.randint(1, 2)):
            time.sleep(chance.uniform(0, 2))
            node = chance.choice(sorted(cluster.worker_nodes, key=_raylet))
            kill_all(below(_raylet(node)))
            cluster.remove_node(node, allow_graceful=False)  # so that it is waited for
            with contextlib.suppress(Exception):  # on a busy machine the study goes on without it
                cluster.add_node(**NODE)
        said = _said(command)
        return bad(command.returncode, said, good=[0])


def _raylet(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


@contextmanager
def _rays_folder() -> Iterator[None]:
    """Let Ray use a new folder. Its sockets need short paths."""
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    os.environ["RAY_TMPDIR"] = place
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def three_nodes() -> Iterator[Any]:
    """Start a cluster of three nodes on this machine, with one core each."""
    cluster = _started()
    try:
        yield cluster
    finally:
        cluster.shutdown()


def _started() -> Any:
    """Return a new cluster. A busy machine may need several attempts to start one."""
    from twofold.experiments import ray_cluster  # noqa: F401  (it sets what Ray reads)

    from ray.cluster_utils import Cluster  # isort: skip

    why = ""
    for _ in range(ATTEMPTS):
        cluster = Cluster()
        try:
            for _ in range(3):
                cluster.add_node(**NODE)
            return cluster
        except Exception as error:  # Ray raises it as it is for a node that takes too long
            why = str(error)
            with contextlib.suppress(Exception):
                cluster.shutdown()
    raise NotStartedError(f"the test's own cluster did not start: {why}")


def words(folder: Path) -> list[str]:
    """Return the words of the command that trains the study."""
    named = ["run", "blobs", *METHODS, "--seed", ",".join(map(str, SEEDS)), "--plugin", PLUGIN]
    sizes = ["--batch-size", "10", "--eval-size", "30", "--checkpoint-every", "0"]
    return [*named, *sizes, "--out", str(folder)]


@contextmanager
def _command(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Start the study; nothing of it outlives the block."""
    command = subprocess.Popen(
        [sys.executable, "-m", "twofold", *words(folder), *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "HOME": str(folder.parent)},  # where Ray puts the key of a new cluster
    )
    try:
        yield command
    finally:
        kill_all(below(command.pid) if command.poll() is None else [])


def _until(condition: Callable[[], bool], command: subprocess.Popen[str]) -> bool:
    patience = Patience(PATIENCE)
    while not condition():
        if patience.is_over() or command.poll() is not None:
            return False
        time.sleep(0.05)
    return True


def _training(folder: Path) -> bool:
    return any(folder.rglob("checkpoint*"))


def _said(command: subprocess.Popen[str]) -> str:
    patience = Patience(PATIENCE)
    while not patience.is_over():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return command.communicate(timeout=1)[1]
    kill_all(below(command.pid))
    return f"no end after {PATIENCE:.0f} seconds\n{command.communicate()[1]}"


def _finish(folder: Path, outcome: Outcome) -> Outcome:
    """Give the same command again, and compare complete runs with undisturbed ones."""
    before = {place.name: _made(place) for place in Store(folder).folders()}
    with _command(folder, "--engine", "inline") as command:
        said = _said(command)
    outcome.badly = outcome.badly or bad(command.returncode, said, good=[0])
    places = {place.name: place for place in Store(folder).folders()}
    outcome.twice = any(_made(places[name]) != made for name, made in before.items())
    outcome.lost = {name: toy.curves(Run.load(p)) for name, p in places.items()} != undisturbed()
    return outcome


def _made(place: Path) -> tuple[int, int]:
    state = (place / "config.json").stat()
    return state.st_ino, state.st_mtime_ns


def undisturbed() -> dict[str, dict[str, bytes]]:
    """Return the curves of all runs by the names of their folders."""
    for method in METHODS:
        for seed in SEEDS if len(expected) < len(METHODS) * len(SEEDS) else ():
            sizes = {"batch_size": 10, "eval_size": 30}
            made = run("blobs", method, seed=seed, plugins=[PLUGIN], progress=False, **sizes)
            expected[made.name] = toy.curves(made)
    return expected
