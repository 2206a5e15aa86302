"""Runs survive: kills, restarts, two processes at once, full disks, damage."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark

from twofold import Run, Store, configure, run
from twofold.errors import UserError
from twofold.experiments import checkpoints
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

PLUGIN = Path(__file__).parents[1] / "helpers" / "plugin.py"
PATHS = (str(PLUGIN.parents[1]), os.environ.get("PYTHONPATH", ""))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, PATHS))}
FAMILIES = [
    "er",
    "er+gem",
    "joint+agem",
    "der(beta=0.5)",
    "der+gem",
    "bic+agem",
    "finetune",
    "agem",
    "gem(references=cumulative)",
    "er+warmup(5)+momentum-reset+ema(0.9)",
    "bic+sam+ema(0.9)",
    "er+lpr(every=3)",
    "er+pcgrad+rescale+clip(0.5)",
]  # fmt: skip


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "twofold", *map(str, words)]


def train_toy(out: Path | None = None) -> Run:
    return run(class_benchmark(), "er", batch_size=10, out=out)


def toy_run(methods: list[str], out: Path, *more: object) -> list[str]:
    return command(
        "run", "toy", *methods, "--plugin", PLUGIN, "--batch-size", 10, "--out", out, *more
    )


def finish(words: list[str], timeout: float = 600) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT)


def start(words: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT)


def wait_for(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def same(a: object, b: object) -> bool:
    """Bitwise, through dicts and lists; times are nobody's business."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a if k != "seconds")
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return a == b


def training(method: str) -> Training:
    benchmark = class_benchmark() if "bic" in method else domain_benchmark(norm=True)
    settings = Settings(lr=0.05, batch_size=10, seed=3, iterations=8, memory_grouping="class")
    return Training(benchmark, *Method.parse(method).make(), settings)


def train_and_tell(method: str, path: Path, pipe) -> None:
    """In a process of its own: a checkpoint after every iteration, until it is killed."""
    made = training(method)
    if path.exists():
        made.restore(checkpoints.read(path))

    def every() -> None:
        checkpoints.write(path, made.state())
        pipe.send((made.task, made.n))

    made.run(every)


@pytest.mark.parametrize("method", FAMILIES)
def test_a_killed_run_goes_on_and_ends_bitwise_as_one_never_killed(method, tmp_path):
    untouched = training(method)
    untouched.run()
    path = tmp_path / "checkpoint.pt"
    dice = random.Random(method)
    fork = multiprocessing.get_context("fork")
    for kill_after in sorted(dice.sample(range(1, 9), 2)):  # how many iterations of its own
        ours, theirs = fork.Pipe()
        process = fork.Process(target=train_and_tell, args=(method, path, theirs))
        process.start()
        for _ in range(kill_after):
            assert ours.poll(30)
            ours.recv()
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    resumed = training(method)
    state = checkpoints.read(path)
    assert (state["task"], state["n"]) > (1, 1)
    resumed.restore(state)
    resumed.run()
    assert same(resumed.state(), untouched.state())


def test_a_checkpoint_runs_nothing_when_it_is_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'sprung'}",)

    torch.save({"format": checkpoints.FORMAT, "state": Trap()}, tmp_path / "checkpoint.pt")
    assert checkpoints.read(tmp_path / "checkpoint.pt") is None
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_checkpoint_that_cannot_be_read_is_none(tmp_path, damage):
    path = tmp_path / "checkpoint.pt"
    checkpoints.write(path, {"values": torch.zeros(1000)})
    path.write_bytes(path.read_bytes()[:2000] if damage is None else damage)
    assert checkpoints.read(path) is None


def test_a_killed_command_goes_on_from_its_checkpoint(tmp_path):
    diary, out = tmp_path / "diary", tmp_path / "runs"
    words = toy_run([f"er+slow(seconds=0.05,diary={diary})"], out, "--checkpoint-every", 0)
    process = start(words)
    wait_for(lambda: diary.exists() and len(diary.read_text().splitlines()) >= 15)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert finish(words).returncode == 0
    made = len(diary.read_text().splitlines())
    assert made - 36 in (0, 1), "at most the iteration it was killed in is made again"
    (run,) = Store(out).runs()
    assert same(run.columns, train_toy().columns)


def test_two_commands_at_once_share_the_work(tmp_path):
    diary, out = tmp_path / "diary", tmp_path / "runs"
    method = f"er+slow(seconds=0.02,diary={diary})"
    words = toy_run([method], out, "--seeds", 4, "--workers", 1)
    both = [start(words), start(words)]
    results = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert len(Store(out).runs()) == 4
    lines = diary.read_text().splitlines()
    assert len(lines) == 4 * 36  # each run was made once
    assert len({line.split()[0] for line in lines}) == 2  # and both processes took part


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path):
    out = tmp_path / "runs"
    config = configure("toy", "er", batch_size=10, plugins=[str(PLUGIN)])
    store = Store(out)
    store.prepare()
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()

    def hold() -> None:
        with store.claim(config) as work:
            theirs.send(work is not None)
            time.sleep(60)

    process = fork.Process(target=hold)
    process.start()
    assert ours.recv()
    with store.claim(config) as work:
        assert work is None
    process.kill()
    process.join()
    with store.claim(config) as work:
        assert work is not None


def test_a_worker_that_dies_once_costs_one_retry(tmp_path):
    out, once = tmp_path / "runs", tmp_path / "once"
    done = finish(toy_run([f"er+deadly(once={once})"], out, "--json", "--checkpoint-every", 0))
    assert done.returncode == 0, done.stderr
    assert "trying once more" in done.stderr
    (run,) = Store(out).runs()
    assert same(run.columns, train_toy().columns)


def test_a_worker_that_keeps_dying_is_reported_and_the_rest_goes_on(tmp_path):
    out = tmp_path / "runs"
    done = finish(toy_run(["er+deadly", "er", "gem", "er+broken"], out, "--json"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert {json.loads(line)["method"] for line in done.stdout.splitlines()} == {"er", "gem"}
    logs = {
        line.split(":")[0]: Path(line.split("(log: ")[1].rstrip(")"))
        for line in done.stderr.splitlines()
        if "(log: " in line
    }
    assert "exit code -9" in logs["er+deadly seed 142"].read_text()
    assert "last words" in logs["er+deadly seed 142"].read_text()
    assert "ZeroDivisionError: broken on purpose" in logs["er+broken seed 142"].read_text()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, text=True
    )
    if made.returncode:
        print(made.stderr)
        pytest.skip("on a full disk (run as root, which may mount one)")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(512))
        except OSError:
            return


def test_a_full_disk_stops_the_work_and_leaves_the_store_sound(small_disk, twofold):
    out = small_disk / "runs"
    train_toy(out)
    filler = small_disk / "filler"
    fill(filler)
    words = toy_run(["er+gem"], out)
    process = finish(words)
    assert process.returncode == 2
    assert process.stderr.splitlines()[-1].endswith("is full: make room, then go on")
    assert "Traceback" not in process.stderr
    assert twofold("runs", "verify", "--runs", out).code == 0
    filler.unlink()
    assert finish(words).returncode == 0
    assert len(Store(out).runs()) == 2


DAMAGES = {
    "a flipped byte": lambda run: _flip(run / "curves.parquet"),
    "a file cut short": lambda run: (run / "curves.parquet").write_bytes(b"PAR1"),
    "a missing file": lambda run: (run / "summary.json").unlink(),
    "a half-copied folder": lambda run: [
        (run / name).unlink() for name in ("checksums.json", "curves.parquet")
    ],
    "a changed number": lambda run: (run / "summary.json").write_text('{"min": 100}'),
}


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def finished_store(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "runs"
    train_toy(out)
    return out


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_run_is_set_aside_and_never_read_as_a_result(
    kind, finished_store, tmp_path, twofold
):
    out = tmp_path / "runs"
    shutil.copytree(finished_store, out)
    store = Store(out)
    (folder,) = store.folders()
    whole = store.runs()[0]
    assert len(whole.columns) > 0  # which reads them, before it is too late
    DAMAGES[kind](folder)
    outcome = twofold("runs", "verify", "--runs", out)
    assert outcome.code == 1
    assert folder.name in outcome.out
    assert store.runs() == []
    assert store.find(whole.config) is None
    assert not folder.exists()
    assert list((out / ".damaged").glob(f"{folder.name}*"))
    store.save(whole)
    assert len(store.runs()) == 1


def test_a_damaged_run_is_trained_again(finished_store, tmp_path):
    out = tmp_path / "runs"
    shutil.copytree(finished_store, out)
    (folder,) = Store(out).folders()
    original = Store(out).runs()[0]
    assert len(original.columns) > 0
    _flip(folder / "curves.parquet")
    assert same(train_toy(out).columns, original.columns)
    assert same(Store(out).runs()[0].columns, original.columns)
    assert list((out / ".damaged").glob(f"{folder.name}*"))


def test_a_store_of_a_newer_version_is_left_alone(tmp_path):
    (tmp_path / "store.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="newer"):
        train_toy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]


def test_the_frame_holds_all_curves(finished_store):
    frame = Store(finished_store).frame()
    assert len(frame) == 36
    columns = {"run", "method", "seed", "task", "accuracy_1", "accuracy_3", "projected",
               "norm_ratio", "loss_new", "loss_old"}  # fmt: skip
    assert columns <= set(frame.columns)
    assert Counter(frame["task"]) == {1: 12, 2: 12, 3: 12}


def test_runs_go_to_the_devices_given_in_turn(tmp_path):
    """A device that is named several times has as many workers, as several runs on a GPU need."""
    from twofold.experiments.local import LocalEngine

    class Watch:
        def __init__(self):
            self.heard = []

        def __getattr__(self, name):
            return lambda index, *rest, **more: self.heard.append((name, index))

    diary = tmp_path / "diary"
    method = f"er+slow(seconds=0.02,diary={diary})"
    configs = [
        configure("toy", method, batch_size=10, seed=seed, plugins=[str(PLUGIN)]) for seed in (1, 2)
    ]
    store, watch = Store(tmp_path / "runs"), Watch()
    store.prepare()
    LocalEngine(devices=["cpu", "cpu:0"]).run(configs, store, None, watch)
    assert sorted(index for word, index in watch.heard if word == "finished") == [0, 1]
    assert len({line.split()[0] for line in diary.read_text().splitlines()}) == 2
    assert {run.config.device for run in store.runs()} == {"cpu", "cpu:0"}


@pytest.mark.parametrize("name", ["a/b", "../up", ".hidden", "two words", "ünï"])
def test_a_run_of_any_benchmark_can_be_saved(name, tmp_path):
    store, toy = Store(tmp_path / "runs"), dataclasses.replace(class_benchmark(), name=name)
    made = run(toy, "er", batch_size=10, iterations=2, tasks=2, out=store.folder)
    (found,) = store.runs()
    assert found.config.benchmark == name
    assert found.min == made.min
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_benchmark_with_a_name_that_cannot_be_shown_is_refused_before_training(tmp_path):
    toy = dataclasses.replace(class_benchmark(), name="\x00")
    with pytest.raises(UserError, match="benchmark must be printable text"):
        run(toy, "er", batch_size=10, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
