"""Worker processes and signals, from the outside: as a shell and an impatient user see them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commandline import Command, Outcome, leftovers, one_line, process, runs_in, start, tiny

from twofold import Run

pytest_plugins = ("commandline_fixtures",)

LONG = ("--iterations", 10_000_000)  # ends with the test, not by itself

# Seed 142 is saved as usual; any other says so in the file NAMED, and takes its time.
SLOW_TO_SAVE = """
import json, pathlib, time
import pyarrow.parquet as parquet

write_table = parquet.write_table

def slowly(table, path, **options):
    if json.loads((pathlib.Path(path).parent / "config.json").read_text())["seed"] != 142:
        pathlib.Path({named!r}).touch()
        time.sleep(60)
    write_table(table, path, **options)

parquet.write_table = slowly
"""

# What the kernel does to a process when memory runs out.
KILLED = """
import os, signal
from twofold import Routine

class Killed(Routine, name="killed"):
    def direct(self, g, step):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def env(cache_folder: str) -> dict[str, str]:
    return {**os.environ, "TWOFOLD_CACHE": cache_folder}


def curves(run: Path) -> dict[str, bytes]:
    table = pq.read_table(run / "curves.parquet")
    return {name: table[name].to_numpy().tobytes() for name in table.column_names}


def alive(group: int) -> list[str]:
    """The processes of a group that still run; one that ended but was not waited for does not."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    return [row[-1] for row in rows if int(row[0]) == group and not row[1].startswith("Z")]


def until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.05)


def interrupted(running: subprocess.Popen[str]) -> Outcome:
    """Ctrl-C: the terminal sends SIGINT to every process of the group. All must end at once."""
    begin = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    try:
        out, err = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    took = time.monotonic() - begin
    assert running.returncode == 130, err
    assert "Traceback" not in err, err
    assert one_line(err[err.rindex("twofold: ") :])
    until(lambda: not alive(running.pid), "no worker is left", 2)
    assert took < 4, "a second or two, and this machine may be busy"
    return Outcome(130, out, err)


def kept(out: Path, lines: list[str]) -> None:
    """Each run that was told of is whole, and there is nothing else."""
    folders = runs_in(out)
    assert len(folders) >= len(lines) > 0
    for folder in folders:
        assert Run.load(folder).summary["iterations"] > 0
    assert leftovers(out) == []


def test_one_worker_or_two_make_the_same_curves(
    run_tiny: Command, toy: Path, half: Path, tmp_path: Path
) -> None:
    """Methods times seeds from one queue, a user's routine among them, one thread each."""
    more = ("--plugin", half, "--seeds", 2, "--json", "--out")
    one = run_tiny("er+half;er+gem", *more, tmp_path / "one").objects
    two = run_tiny("er+half;er+gem", *more, tmp_path / "two", "--workers", 2).objects
    wanted = {(m, s) for m in ("er+half", "er+gem") for s in (142, 152)}
    assert {(made["method"], made["seed"]) for made in one} == wanted
    assert {(made["method"], made["seed"]) for made in two} == wanted
    folders = [{Path(made["folder"]).name: made["folder"] for made in runs} for runs in (one, two)]
    assert folders[0].keys() == folders[1].keys()
    for name in folders[0]:
        assert curves(Path(folders[0][name])) == curves(Path(folders[1][name]))
    for made in one + two:
        if made["method"] == "er+half":
            table = pq.read_table(Path(made["folder"]) / "curves.parquet")
            assert set(table["threads"].to_pylist()) == {1.0}
    assert leftovers(tmp_path / "two") == []


def test_a_mistake_that_only_workers_find(run_tiny: Command, tmp_path: Path) -> None:
    done = run_tiny("er", "--batch-size", 26, "--seeds", 2, "--workers", 2)
    assert done.code == 2
    assert "batch size 26" in one_line(done.err)
    assert runs_in(tmp_path / "out") == []


def test_interrupt_in_one_process(toy: Path, tmp_path: Path, env: dict[str, str]) -> None:
    out = tmp_path / "out"
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW_TO_SAVE.format(named=str(tmp_path / "saving")))
    command = (*tiny(toy, out, "er"), "--workers", 1, "--seeds", 3, "--json", "--plugin", slow)
    running = start(*command, env=env)
    assert running.stdout is not None
    first = running.stdout.readline()
    until((tmp_path / "saving").exists, "the second run is being saved")
    done = interrupted(running)
    kept(out, [first, *done.out.splitlines()])


def test_interrupt_with_workers(toy: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """One run is complete and the other is being saved."""
    out = tmp_path / "out"
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW_TO_SAVE.format(named=str(tmp_path / "saving")))
    command = (*tiny(toy, out, "er"), "--workers", 2, "--seeds", 4, "--json", "--plugin", slow)
    running = start(*command, env=env)
    assert running.stdout is not None
    first = running.stdout.readline()
    until((tmp_path / "saving").exists, "the second run is being saved")
    done = interrupted(running)
    kept(out, [first, *done.out.splitlines()])


def test_interrupt_while_workers_start(toy: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """They take seconds to import torch, and have a Ctrl-C of their own until they refuse it."""
    out = tmp_path / "out"
    running = start(*tiny(toy, out, "er"), "--workers", 2, "--seeds", 2, *LONG, env=env)
    workers = lambda: [args for args in alive(running.pid) if "spawn_main" in args]  # noqa: E731
    until(lambda: len(workers()) == 2, "both workers are there")
    time.sleep(0.5)
    interrupted(running)
    assert runs_in(out) == []
    assert leftovers(out) == []


def test_a_worker_that_is_killed(toy: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """The command says which run it was, keeps what is complete, and does not wait for ever."""
    out, plugin = tmp_path / "out", tmp_path / "killed.py"
    plugin.write_text(KILLED)
    options = ("--workers", 2, "--seeds", 2, "--json", "--plugin", plugin)
    done = process(*tiny(toy, out, "er;er+killed"), *options, env=env)
    assert done.code == 1
    assert len(done.out.splitlines()) >= 1
    assert len(runs_in(out)) >= len(done.out.splitlines())
    assert not [name for name in leftovers(out) if "partial" in name]
    assert "Traceback" not in done.err
    (*_, told) = [line for line in done.err.splitlines() if "died" in line or "killed" in line]
    assert "er+killed seed 1" in told


def test_a_worker_that_fails(toy: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """An error in a user's routine: where it was is what they need to know."""
    out, plugin = tmp_path / "out", tmp_path / "broken.py"
    plugin.write_text(KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "g.no_such_thing"))
    options = ("--workers", 2, "--seeds", 2, "--json", "--plugin", plugin)
    done = process(*tiny(toy, out, "er+killed"), *options, env=env)
    assert done.code == 1
    assert done.out == ""
    assert "er+killed seed 1" in done.err
    assert "no_such_thing" in done.err
    assert runs_in(out) == []


def test_two_commands_at_once_into_one_folder(tmp_path: Path, run_tiny: Command) -> None:
    """`for method in er gem; do twofold run ... & done`: each finds the folder writable."""
    code = (
        "import sys; from pathlib import Path; from twofold.experiments import runs\n"
        "for _ in range(200): runs.check_writable(Path(sys.argv[1]))"
    )
    del code
