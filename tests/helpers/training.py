"""Short training on small benchmarks, and a routine that records its steps."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from helpers.benchmarks import class_benchmark
from twofold import Benchmark
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
