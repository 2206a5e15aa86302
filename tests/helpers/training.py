"""Short training on small benchmarks, and a routine that records its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from helpers.benchmarks import class_benchmark
from twofold import Benchmark
from twofold.experiments import checkpoints
from twofold.method import Method
from twofold.models import FlatModel
from twofold.results import Result
from twofold.routines import Routine, Step
from twofold.settings import Settings
from twofold.training import Training

ITERATIONS = 6  # per task


def training_of(
    method: str, *more: Routine, benchmark: Benchmark | None = None, **options: Any
) -> Training:
    """Return the training of a method that has not begun; `more` routines follow its own."""
    objective, routines = Method.parse(method).make()
    options = {"lr": 0.02, "batch_size": 8, "seed": 0, "iterations": ITERATIONS} | options
    settings = Settings(**options)
    return Training(benchmark or class_benchmark(), objective, [*routines, *more], settings)


def trained(method: str, *more: Routine, **options: Any) -> tuple[Training, Result]:
    """Train a method to its end, with the options of `training_of`."""
    training = training_of(method, *more, **options)
    return training, training.run()


def run_and_resume(
    untouched: Training, resumed: Training, file: Path, place: tuple[int, int] = (2, 2)
) -> tuple[Result, Result]:
    """Train to the end, and once more from a checkpoint at a place (task and iteration)."""

    def every() -> None:
        if (untouched.task, untouched.n) == place:
            checkpoints.write(file, untouched.state())

    first = untouched.run(every)
    resumed.restore(checkpoints.read(file))
    return first, resumed.run()


class Recorder(Routine):
    """Records the direction and the weights of every iteration; has no name, so no entry."""

    def start(self, net: FlatModel) -> None:
        self.directions: list[Tensor] = []
        self.weights = [net.values.clone()]

    def direct(self, g: Tensor, step: Step) -> Tensor:
        self.directions.append(g.clone())
        return g

    def after_step(self, step: Step) -> None:
        self.weights.append(step.net.values.clone())
