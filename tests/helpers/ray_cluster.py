"""What tests of a Ray cluster share: a benchmark and routines to disturb its runs, a watcher."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twofold.experiments.execution import Finished

STEPS = 50  # of a run
PATIENCE = 600.0  # seconds: a busy machine is slow, and nothing here depends on its speed

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


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.05)


def steps(folder: Path, run: int) -> list[tuple[int, int]]:
    """Return the process of each step of a run, in order."""
    file = folder / f"run-{run}"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(process), int(step)) for process, step in map(str.split, lines)]
