"""Additions to the loss of any objective: the terms of a method such as `er+decay(1e-5)`."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from torch import Tensor

from twofold.benchmarks import Benchmark
from twofold.choices import Scenario
from twofold.cost import Load
from twofold.method import Part
from twofold.models import FlatModel


class Forward(NamedTuple):
    """One forward pass of an iteration, with its graph."""

    x: Tensor
    logits: Tensor  # of all outputs, also with scenario task
    activations: list[Tensor]  # of hidden layers, for a term that asks for them
    share: float  # of the iteration's examples; the shares of its passes add up to 1
    tasks: Tensor | None = None  # the ids of the examples' tasks, if they are known


class Addition(Part, kind="term"):
    """A term that is added to any objective. Write `loss`, for data, or `pull`, for weights.

    It does not count as loss on old data, so routines see it in g and not in g_old.
    """

    watches: ClassVar[bool] = False  # whether `loss` looks at the activations of hidden layers

    # Set by `start`.
    context: ClassVar[tuple[str, ...]] = ("benchmark", "net", "seed")
    benchmark: Benchmark
    net: FlatModel
    seed: int

    def check(self, objective: str, scenario: Scenario) -> None:
        """Raise UserError if it makes no sense with this objective or in such a setting."""

    def start(self, benchmark: Benchmark, net: FlatModel, seed: int) -> None:
        """Prepare for a run, once before the first task."""
        self.benchmark, self.net, self.seed = benchmark, net, seed

    def start_task(self, task: int) -> None:
        """Prepare for a task."""

    def end_task(self, task: int) -> None:
        """Look at the network at the end of a task."""

    def loss(self, forward: Forward) -> Tensor | None:
        """Return the mean loss over the examples of a forward pass; None if there is none."""
        return None

    def pull(self, values: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the value and the gradient of a loss of the weights; None if there is none."""
        return None

    def cost(self, task: int, images: float) -> Load:
        """Return the load of an iteration with this number of images."""
        return Load()
