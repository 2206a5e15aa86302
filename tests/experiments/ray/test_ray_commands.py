"""Commands with the engine ray: Ctrl-C, a killed head, wrong addresses and options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.commandline import Command, one_line, process, runs_in, start
from helpers.ray_cluster import PATIENCE, steps, until

from torture.clusters import ATTEMPTS
from torture.processes import below, command_of, ended, kill_all

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster


def begin(folder: Path, out: Path, methods: list[str], *options: str) -> subprocess.Popen[str]:
    return start(
        *("run", "blobs", *methods, "--batch-size", "10", "--plugin", folder / "blobs.py"),
        *("--out", out, "--json", "--engine", "ray", *options),
        env={**os.environ, "HOME": str(out.parent)},  # where Ray puts the key of a new cluster
    )


def begun(
    run: int, folder: Path, out: Path, methods: list[str], *options: str
) -> subprocess.Popen[str]:
    """Begin a command, and wait until a run has made its first step.

    Ray gives up on a cluster that takes long to start, as on a busy machine: it is begun again.
    """
    for _ in range(ATTEMPTS):
        command = begin(folder, out, methods, *options)
        until(lambda c=command: steps(folder, run) or c.poll() is not None, "the run has started")
        if command.poll() is None:
            return command
        _, err = command.communicate()
        assert "can't start a Ray cluster" in err, err
    raise AssertionError("no cluster could be started")


def interrupt(command: subprocess.Popen[str], worker: int) -> str:
    """Press Ctrl-C, which ends the command and its worker, and return what it says."""
    pids = [*below(command.pid), worker]
    os.killpg(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert one_line(err[err.rindex("twofold: ") :])
    assert ended(pids, 30), "some of its processes are left"
    return err


@pytest.mark.slow
def test_a_head_that_is_killed(folder: Path, rays_folder: Path, tmp_path: Path) -> None:
    """One line says so, soon, and the same command continues."""
    methods = ["er", "er+traced(run=41,seconds=600)"]
    command = begun(41, folder, tmp_path / "out", methods, "--workers", "1")
    pids: list[int] = []
    try:
        pids = below(command.pid)
        head = next(pid for pid in pids if "gcs_server" in command_of(pid))
        os.kill(head, signal.SIGKILL)
        _, err = command.communicate(timeout=PATIENCE)
        assert ended(pids, 30), "some of the cluster's processes are left"
    finally:
        kill_all([*pids, command.pid])
    assert command.returncode == 2, err
    assert err.splitlines()[-1].startswith("twofold: the Ray cluster is gone")
    assert not [line for line in err.splitlines() if "ray" in line and "twofold" not in line], err
    assert len(runs_in(tmp_path / "out")) == 1


def test_ctrl_c(folder: Path, rays_folder: Path, tmp_path: Path) -> None:
    """One run is complete, one never ends; the command's own cluster ends with it."""
    methods = ["er+traced(run=31)", "er+traced(run=32,seconds=600)"]
    command = begun(32, folder, tmp_path / "out", methods, "--workers", "2")
    try:
        assert command.stdout is not None
        assert json.loads(command.stdout.readline())["method"] == methods[0]
        interrupt(command, worker=steps(folder, 32)[0][0])
    finally:
        kill_all(below(command.pid))
    assert len(runs_in(tmp_path / "out")) == 1


@pytest.mark.slow
def test_ctrl_c_in_a_cluster_that_was_there(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    """The cluster stays. What Ray prints about dead workers is not on standard output."""
    methods = ["er+traced(run=21)", "er+mortal(times=3)", "er+traced(run=22,seconds=600)"]
    command = begun(22, folder, tmp_path / "out", methods, "--address", cluster.address)
    deaths = folder / "deaths-3"
    try:
        assert command.stdout is not None
        assert json.loads(command.stdout.readline())["method"] == methods[0]
        until(lambda: deaths.exists() and deaths.read_text() == "xx", "a worker has died twice")
        err = interrupt(command, worker=steps(folder, 22)[0][0])
    finally:
        kill_all(below(command.pid))
    assert "er+mortal(times=3) seed 142: its worker died; trying once more" in err
    assert len(runs_in(tmp_path / "out")) == 1
    assert cluster.remaining_processes_alive()


def test_an_address_where_nothing_is(folder: Path, tmp_path: Path) -> None:
    done = process(
        *("run", "blobs", "er", "--batch-size", "10", "--plugin", folder / "blobs.py"),
        *("--out", tmp_path, "--engine", "ray", "--address", "127.0.0.1:1"),
    )
    assert done.code == 2
    assert "no Ray cluster at 127.0.0.1:1" in one_line(done.err)
    assert done.out == ""


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
    assert one_line(done.err) == "the engine ray needs ray: pip install 'twofold[ray]'"
