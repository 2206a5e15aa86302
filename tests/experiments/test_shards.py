"""Shards: disjoint, together the whole, balanced, and merged as if one machine had done it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import twofold
from twofold import Recipe, Routine, Store, UserError
from twofold.cli import main
from twofold.experiments import studies
from twofold.experiments.estimate import COST, Estimator
from twofold.experiments.merging import merge
from twofold.experiments.shards import _dealt, divided, part_of

BLOBS = Path(__file__).parents[2] / "torture" / "blobs.py"
SCRIPT = BLOBS.parents[1] / "examples" / "shards.slurm"
SHARDS = 10
STUDY = """
title = "Toy"
seeds = 2
plugins = ["blobs.py"]

[[grid]]
benchmark = "blobs"
method = ["er", "er+gem"]
lr = [0.1, 0.05, 0.02, 0.01]
batch_size = 10
iterations = 3

[[grid]]
benchmark = "blobs"
method = "er+slow(seconds=0.05)"
batch_size = 10
iterations = 6
"""


@pytest.fixture(scope="module")
def appendix() -> list[twofold.Config]:
    return studies.load("appendix").configs()


def identities(configs: Iterable[twofold.Config]) -> list[str]:
    return sorted(config.identity() for config in configs)


@pytest.mark.parametrize("count", [1, 2, 7, 10, 47, 48, 49, 100])
def test_shards_are_disjoint_and_together_the_study(appendix, count):
    some = appendix[::60]
    parts = divided(some, count)
    assert identities(config for part in parts for config in part) == identities(some)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_shards_have_about_the_same_cost(appendix):
    """They cost the same in every benchmark, since networks differ in their speed."""
    estimator, parts = Estimator(speed=COST), divided(appendix, SHARDS)
    for benchmark in {config.benchmark for config in appendix}:
        costs = [
            sum(estimator.seconds(config) for config in part if config.benchmark == benchmark)
            for part in parts
        ]
        assert max(costs) < 1.05 * min(costs)


def test_a_shard_depends_on_the_runs_and_not_on_their_order(appendix):
    some = appendix[::60]
    shuffled = sorted(some, key=lambda config: config.identity())
    assert identities(part_of(shuffled, "3/7")) == identities(part_of(some, "3/7"))


@given(count=st.integers(1, 50), rounds=st.integers(1, 20))
def test_cards_are_dealt_evenly(count, rounds):
    dealt = Counter(_dealt(place, count) for place in range(count * rounds))
    assert dealt == dict.fromkeys(range(count), rounds)


@pytest.mark.parametrize("shard", ["0/10", "11/10", "3", "a/b", "3/", "-1/10", "3/10/2", "1/0", ""])
def test_a_wrong_shard_is_refused_in_one_line(shard, capsys, tmp_path):
    words = ["study", "run", "main", "--shard", shard, "--out", str(tmp_path / "runs")]
    if shard.startswith("-"):
        words[3:5] = [f"--shard={shard}"]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("twofold: shard must be a part and the number of parts, from 1/N to N/N")
    assert not (tmp_path / "runs").exists()


def test_a_shard_and_a_plan_exclude_each_other(capsys):
    assert main(["study", "run", "main", "--shard", "1/2", "--within", "1h", "--dry-run"]) == 2
    assert "shard and within exclude each other" in capsys.readouterr().err


def test_a_forecast_is_of_the_shard(capsys):
    words = ["run", "rotated-mnist", "er", "er+gem", "--seeds", "5", "--shard", "4/4", "--dry-run"]
    assert main(words) == 0
    assert "rotated-mnist: 2 runs, 0 done, 2 to train" in capsys.readouterr().out


def test_an_empty_shard_is_no_mistake(capsys, tmp_path):
    words = ["run", "rotated-mnist", "er", "--shard", "2/2", "--out", str(tmp_path / "runs")]
    assert main(words) == 0
    assert capsys.readouterr().err == "shard 2/2 is empty: there are fewer runs than shards\n"
    assert len(Store(tmp_path / "runs").runs()) == 0


@pytest.fixture
def toy(tmp_path: Path):
    (tmp_path / "blobs.py").write_text(BLOBS.read_text())
    study = tmp_path / "toy.toml"
    study.write_text(STUDY)
    yield study
    Recipe.known.pop("blobs", None)
    Routine.known.pop("slow", None)


def files(folder: Path) -> dict[str, tuple[bytes, bytes]]:
    return {
        place.name: tuple((place / name).read_bytes() for name in ("config.json", "curves.parquet"))
        for place in Store(folder).folders()
    }


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    return [tmp_path / f"shard-{k}" for k in range(1, SHARDS + 1)]


def started(study: Path, number: int, stores: Path) -> subprocess.Popen[str]:
    """Begin a shard as a cluster does."""
    task = {"STUDY": str(study), "SHARDS": str(SHARDS), "SLURM_ARRAY_TASK_ID": str(number)}
    task |= {"STORES": str(stores), "OPTIONS": "--engine inline --checkpoint-every 0"}
    task["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command, environment = ["bash", SCRIPT], {**os.environ, **task}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str], store: Path) -> None:
    """Kill a process when a run of its store has a checkpoint."""
    while not [*store.glob(".work/*/checkpoint.pt")]:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert [*store.glob(".work/*/checkpoint.pt")]


def slow_shard(study: Path) -> int:
    """Return the number of a shard that ends with a run that waits, so that it can be killed."""
    configs = studies.load(str(study)).configs()
    return next(k for k in range(1, SHARDS + 1) if "slow" in part_of(configs, f"{k}/10")[-1].method)


@pytest.mark.slow
def test_ten_processes_at_once_make_the_study_of_one_machine(toy, tmp_path, stores):
    slow = slow_shard(toy)
    processes = [started(toy, number, tmp_path) for number in range(1, SHARDS + 1)]
    kill(processes[slow - 1], stores[slow - 1])
    processes[slow - 1] = started(toy, slow, tmp_path)
    for process in processes:
        error = process.communicate(timeout=600)[1]
        assert process.returncode == 0, error
    assert merge(stores, tmp_path / "all").added == 18
    twofold.run_all(str(toy), out=tmp_path / "one", engine="inline")
    assert files(tmp_path / "all") == files(tmp_path / "one")


def test_ten_machines_that_share_nothing(toy, tmp_path, stores, capsys):
    """One is killed and continues. The merged store is bitwise that of one machine."""
    configs, slow = studies.load(str(toy)).configs(), slow_shard(toy)
    with started(toy, slow, tmp_path) as process:
        kill(process, stores[slow - 1])
    for number, store in enumerate(stores, 1):
        twofold.run_all(str(toy), out=store, shard=f"{number}/10", engine="inline", workers=1)
    assert main(["runs", "merge", *map(str, stores[:4]), "--out", str(tmp_path / "all")]) == 0
    assert main(["runs", "merge", *map(str, stores), "--out", str(tmp_path / "all")]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines() if "merged into" in line]
    assert sum(int(words[0]) for words in said) == len(configs)
    twofold.run_all(str(toy), out=tmp_path / "one", engine="inline")
    assert files(tmp_path / "all") == files(tmp_path / "one")
    assert len(files(tmp_path / "all")) == len(configs) == 18
    again = merge(stores, tmp_path / "all")
    assert (again.added, again.present, again.remarks) == (0, 18, [])
    assert main(["runs", "verify", "--runs", str(tmp_path / "all")]) == 0


def test_runs_that_are_not_found_again_are_refused():
    lock = threading.Lock()  # nothing can describe it

    class Locked(Routine, name="locked"):
        def direct(self, g, step):
            with lock:
                return g

    try:
        config = twofold.configure("rotated-mnist", "er+locked")
        with pytest.raises(UserError, match=r"^a shard needs runs that are found again, and er\+"):
            part_of([config], "1/2")
    finally:
        Routine.known.pop("locked", None)
