"""A plugin for tests: a benchmark that needs no data, and routines that are slow, or die."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from helpers.benchmarks import class_benchmark
from twofold import Recipe, Routine


class Toy(Recipe, name="toy"):
    title = "Toy"
    about = "3 tasks of 3 classes; a small convolutional network"
    dataset = None
    scenario = "class"
    tasks = 3
    offline_iterations = 12

    @classmethod
    def build(cls, seed, folder=None, whitening="train", device="cpu"):
        return class_benchmark()


@dataclass
class Slow(Routine, name="slow"):
    """Waits, and writes down that it was here: process, task, iteration."""

    seconds: float = 0.01
    diary: str = ""

    def after_step(self, step):
        time.sleep(self.seconds)
        if self.diary:
            with Path(self.diary).open("a") as file:
                file.write(f"{os.getpid()} {step.task} {step.iteration}\n")


@dataclass
class Deadly(Routine, name="deadly"):
    """Kills its process at an iteration of task 2: always, or the first time only."""

    iteration: int = 3
    once: str = ""

    def after_step(self, step):
        if (step.task, step.iteration) != (2, self.iteration):
            return
        if self.once and Path(self.once).exists():
            return
        if self.once:
            Path(self.once).touch()
        print("last words")
        os.kill(os.getpid(), signal.SIGKILL)


class Broken(Routine, name="broken"):
    """Raises an error that nobody expects."""

    def direct(self, g, step):
        raise ZeroDivisionError("broken on purpose")
