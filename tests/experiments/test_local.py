"""Worker processes and signals, from the outside: as a shell and an impatient user see them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from helpers.commandline import Command, Outcome, leftovers, one_line, runs_in, start, tiny
from helpers.watching import python

from twofold import Run
from twofold.experiments import local

Begin = Callable[..., subprocess.Popen[str]]

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

UNGUARDED = """
import twofold

print("imported")
short = dict(plugins=[{plugin!r}], iterations=2, eval_size=10)
runs = [twofold.configure("tiny", "er", seed=seed, **short) for seed in (1, 2)]
twofold.run_all(runs, out={out!r}, data={data!r}, workers=2)
"""

# What the kernel does to a process when memory runs out.
KILLED = """
import os, signal
from twofold import Routine

class Killed(Routine, name="killed"):
    def direct(self, g, step):
        os.kill(os.getpid(), signal.SIGKILL)
"""

SLEEPS = """
import pathlib, time
from twofold import Routine

class Sleeps(Routine, name="sleeps"):
    def direct(self, g, step):
        pathlib.Path({named!r}).touch()
        time.sleep(600)
"""

COUNTS = """
import gc, pathlib
from twofold import Routine

class Counts(Routine, name="counts"):
    def direct(self, g, step):
        pathlib.Path({named!r}).write_text(f"{{len(gc.get_objects())}} {{gc.get_freeze_count()}}")
        return g
"""


@pytest.fixture
def env(cache_folder: str) -> dict[str, str]:
    return {**os.environ, "TWOFOLD_CACHE": cache_folder}


@pytest.fixture
def begin(env: dict[str, str]) -> Iterator[Begin]:
    """Start commands that don't outlive the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*args: object) -> subprocess.Popen[str]:
        started.append(start(*args, env=env))
        return started[-1]

    yield begin
    for running in started:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


def curves(run: Path) -> dict[str, bytes]:
    table = pq.read_table(run / "curves.parquet")
    return {name: table[name].to_numpy().tobytes() for name in table.column_names}


def alive(group: int) -> list[str]:
    """The processes of a group that still run; one that ended but was not waited for does not."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    return [row[-1] for row in rows if int(row[0]) == group and not row[1].startswith("Z")]


def until(condition: Callable[[], bool], what: str, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.05)


def interrupted(running: subprocess.Popen[str]) -> Outcome:
    """Ctrl-C: the terminal sends SIGINT to every process of the group. All must end.

    They do not wait for their work, which takes minutes.
    """
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "Traceback" not in err, err
    assert "the same command continues" in one_line(err[err.rindex("twofold: ") :])
    until(lambda: not alive(running.pid), "no worker is left", 30)
    return Outcome(130, out, err)


def kept(out: Path, lines: list[str]) -> None:
    """Each run that was told of is whole, and there is nothing else."""
    folders = runs_in(out)
    assert len(folders) >= len(lines) > 0
    for folder in folders:
        assert Run.load(folder).summary["iterations"] > 0
    assert leftovers(out) == []


def test_a_script_that_starts_workers_when_it_is_imported(toy: Path, tmp_path: Path) -> None:
    names = {"plugin": str(toy / "tiny.py"), "out": str(tmp_path / "runs"), "data": str(toy)}
    (tmp_path / "script.py").write_text(UNGUARDED.format(**names))
    out, err = python(tmp_path / "script.py").communicate(timeout=120)
    assert out.splitlines()[0] == "imported"
    assert err.count("Traceback") == 1  # of the script, and of no worker
    assert 'put its calls below `if __name__ == "__main__":`' in err.splitlines()[-1]


def test_two_workers_make_the_same_curves_as_none(
    twofold: Command, toy: Path, half: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Methods times seeds from one queue, a user's routine among them, one thread each."""
    methods, more = "er+half;er+gem", ("--plugin", half, "--seeds", 2, "--json")
    two = twofold(*tiny(toy, tmp_path / "two", methods), *more, "--workers", 2).objects
    torch.set_num_threads(2)  # as many as this process likes: a run takes one
    here = request.getfixturevalue("run_tiny")
    one = here(methods, *more, "--out", tmp_path / "one").objects
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


def test_a_mistake_that_only_workers_find(twofold: Command, toy: Path, tmp_path: Path) -> None:
    done = twofold(*tiny(toy, tmp_path / "out", "er"), "--batch-size", 26, "--workers", 1)
    assert done.code == 2
    assert "batch size 26" in one_line(done.err)
    assert runs_in(tmp_path / "out") == []


def test_interrupt_with_workers(toy: Path, tmp_path: Path, begin: Begin) -> None:
    """One run is complete and the other is being saved."""
    out = tmp_path / "out"
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW_TO_SAVE.format(named=str(tmp_path / "saving")))
    command = (*tiny(toy, out, "er"), "--workers", 2, "--seeds", 4, "--json", "--plugin", slow)
    running = begin(*command)
    assert running.stdout is not None
    first = running.stdout.readline()
    until((tmp_path / "saving").exists, "the second run is being saved")
    done = interrupted(running)
    kept(out, [first, *done.out.splitlines()])


def test_interrupt_while_workers_start(toy: Path, tmp_path: Path, begin: Begin) -> None:
    """Their server takes seconds to import torch, and would have a Ctrl-C of its own meanwhile."""
    out = tmp_path / "out"
    running = begin(*tiny(toy, out, "er"), "--workers", 2, "--seeds", 2, *LONG)

    def starts() -> bool:
        return any("multiprocessing.forkserver" in args for args in alive(running.pid))

    until(starts, "the workers' server is there")
    time.sleep(1)
    interrupted(running)
    assert runs_in(out) == []
    assert leftovers(out) == []


def test_complete_runs_need_no_worker(
    twofold: Command, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tiny(toy, tmp_path / "out", "er")
    assert twofold(*words).code == 0
    monkeypatch.setattr(local._Pool, "_hire", None)
    done = twofold(*words)
    assert done.code == 0, done.err


def test_a_worker_that_is_killed(twofold: Command, toy: Path, tmp_path: Path) -> None:
    """The command says which run it was, keeps what is complete, and does not wait for ever."""
    out, plugin = tmp_path / "out", tmp_path / "killed.py"
    plugin.write_text(KILLED)
    options = ("--workers", 1, "--json", "--plugin", plugin)
    done = twofold(*tiny(toy, out, "er;er+killed"), *options)
    assert done.code == 1
    (made,) = done.out.splitlines()
    assert '"method": "er"' in made
    assert ["killed" in made.name for made in runs_in(out)] == [False]
    assert not [name for name in leftovers(out) if "partial" in name]
    assert "Traceback" not in done.err
    (*_, told) = [line for line in done.err.splitlines() if "died" in line]
    assert told.startswith("er+killed seed 142: ")


def test_garbage_collections_of_a_worker_skip_what_its_server_imported(
    twofold: Command, toy: Path, tmp_path: Path
) -> None:
    """They would copy its memory into every worker."""
    plugin, counts = tmp_path / "counts.py", tmp_path / "counts"
    plugin.write_text(COUNTS.format(named=str(counts)))
    words = tiny(toy, tmp_path / "out", "er+counts")
    done = twofold(*words, "--plugin", plugin, "--workers", 1)
    assert done.code == 0, done.err
    looked_at, skipped = map(int, counts.read_text().split())
    assert looked_at < skipped / 3


@pytest.mark.parametrize("word", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_with_a_command_that_is_killed(
    begin: Begin, toy: Path, tmp_path: Path, word: signal.Signals
) -> None:
    """At once, and not when its run has something to tell, which may be minutes later."""
    plugin, asleep = tmp_path / "sleeps.py", tmp_path / "asleep"
    plugin.write_text(SLEEPS.format(named=str(asleep)))
    running = begin(*tiny(toy, tmp_path / "out", "er+sleeps"), "--plugin", plugin, "--workers", 1)
    until(asleep.exists, "the routine sleeps")
    running.send_signal(word)
    until(lambda: not alive(running.pid), "no worker is left", 30)


def test_an_error_in_a_users_routine(twofold: Command, toy: Path, tmp_path: Path) -> None:
    """They are told which run it was, and the log says where in their file."""
    plugin = tmp_path / "broken.py"
    plugin.write_text(KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "g.no_such_thing"))
    options = ("--plugin", plugin, "--workers", 1)
    done = twofold(*tiny(toy, tmp_path / "out", "er+killed;er"), *options)
    assert done.code == 1
    (told,) = [line for line in done.err.splitlines() if line.startswith("er+killed seed 142: ")]
    assert "no_such_thing" in told
    log = Path(told[told.rindex("(log: ") + 6 : -1])
    assert f'"{plugin}", line 7' in log.read_text()
    assert "er seed 142: MIN" in done.err  # one that fails does not stop the others
    assert [made.name for made in runs_in(tmp_path / "out") if "killed" in made.name] == []
