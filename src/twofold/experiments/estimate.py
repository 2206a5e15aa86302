"""How long runs will take: the images they pass through the network, and how fast that is here.

Counted are forward and backward passes, and images in evaluation; both are measured for about a
second on random images. What is left out (drawing batches, augmenting them, GEM's small quadratic
program) is little beside them.
"""

from __future__ import annotations

import dataclasses
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from twofold.benchmarks import Recipe
from twofold.evaluation.continual import Precision
from twofold.evaluation.predictors import chunk_size
from twofold.evaluation.schedule import Schedule
from twofold.experiments.config import Config
from twofold.experiments.execution import one_thread
from twofold.gradients import objective_gradient
from twofold.method import needs_of
from twofold.models import FlatModel
from twofold.models.inference import Inference
from twofold.objectives.base import Objective, Term, cross_entropy
from twofold.objectives.bic import Bic
from twofold.routines import Needs, Routine
from twofold.routines.lpr import Lpr

BACKWARD = 2 / 3  # of a pass: gradients of the weights and of the layers below, beside one forward
TIMED = 0.3  # seconds that each thing is timed for, at least


class Sizes(NamedTuple):
    """A benchmark in numbers: training images, test images and classes a task."""

    train: int
    test: int
    classes: int
    image: tuple[int, ...]  # as the network sees it: channels, height, width


# As published, so that a study can be planned before its data are there.
PAPER = {
    "rotated-mnist": Sizes(60_000, 10_000, 10, (1, 28, 28)),
    "domain-cifar100": Sizes(10_000, 2_000, 20, (3, 32, 32)),
    "split-cifar100": Sizes(5_000, 1_000, 10, (3, 32, 32)),
    "split-mini-imagenet": Sizes(2_500, 500, 5, (3, 84, 84)),
}


@dataclass(frozen=True)
class Load:
    """What is to be done: passes with gradients, images in them, and images without gradients."""

    passes: float = 0
    images: float = 0
    judged: float = 0

    def __add__(self, other: Load) -> Load:
        return Load(*map(operator.add, dataclasses.astuple(self), dataclasses.astuple(other)))

    def __mul__(self, times: float) -> Load:
        return Load(*(times * part for part in dataclasses.astuple(self)))


def load_of(config: Config, sizes: Sizes, batch_norm: bool) -> Load:
    """Of a whole run."""
    recipe, parts = Recipe.find(config.benchmark), config.make_components()
    iterations = config.settings().iterations_of(sizes.train, recipe.offline_iterations)
    evaluations = Schedule.parse(config.eval_schedule, config.eval_every).count(iterations)
    total = Load()
    for task in range(1, (config.tasks or recipe.tasks) + 1):
        total += iteration(*parts, task, config.batch_size, batch_norm) * iterations
        judged = task * min(config.eval_size, sizes.test)
        if isinstance(parts[0], Bic) and task > 1:  # what its bias is fitted to
            judged += task * sizes.classes * round(config.memory_per_class * parts[0].validation)
        seen = evaluations * judged + task * sizes.test  # all test images, at the task's end
        # Where a routine has other weights judged, those that are trained are judged as well.
        twice = any(routine.overrides("evaluated") for routine in parts[1])
        total += Load(judged=seen * (1 + twice))
    return total


def iteration(
    objective: Objective, routines: Sequence[Routine], task: int, b: int, batch_norm: bool
) -> Load:
    """Of one training iteration: step by step what `Training._iterate` does."""
    needs = needs_of(routines)
    past = task - 1
    times = 2 if Needs.ELSEWHERE in needs else 1  # the objective's gradient, again at other weights
    if past == 0:
        return Load(1, b) * times
    replayed = {"nothing": 0, "total": b, "each": past * b}[objective.replays]
    passes = task if objective.replays == "each" and batch_norm else 1
    own = done = Load(passes, b + replayed)
    if Needs.OLD in needs and replayed:  # g_old apart: another backward pass, or two forward ones
        done = done * (1 + BACKWARD) if batch_norm else done + Load(passes=1)
    done += own * (times - 1)
    if Needs.PER_TASK in needs:
        done += Load(past, past * b)
    if Needs.FROZEN_OLD in needs or (Needs.OLD in needs and not replayed):
        done += Load(1, b) * (past if objective.replays == "each" else 1)
    if isinstance(objective, Bic):  # the previous model says what to distil
        done += Load(judged=b + replayed)
    for routine in routines:
        if isinstance(routine, Lpr):  # what the memory feeds into each layer
            done += Load(judged=routine.examples / routine.every)
    return done


@dataclass(frozen=True)
class Speed:
    """Of a network on one core of this machine: seconds a pass, an image in it, one judged."""

    a_pass: float
    image: float
    judged: float

    def seconds(self, load: Load) -> float:
        return load.passes * self.a_pass + load.images * self.image + load.judged * self.judged


def calibrate(net: FlatModel, image: tuple[int, ...], precision: Precision = "fp32") -> Speed:
    """Time passes of two sizes, which tells what an image takes from what a pass does."""
    few, many = (4, 16) if net.has_batch_norm else (16, 256)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    chunk = chunk_size(net, _random(1, image), dtype)
    velocity = torch.zeros_like(net.values)
    judging = Inference(net, dtype)
    judging.follow()

    def train(x: Tensor) -> None:
        terms = [Term("new", 1.0, x, cross_entropy(torch.zeros(len(x), dtype=torch.long)))]
        velocity.mul_(0.9).add_(objective_gradient(net, [terms], apart=False).g)
        net.values.add_(velocity, alpha=0.0)  # the time is all that is wanted

    @torch.inference_mode()
    def judge(x: Tensor) -> None:
        judging(x)

    with one_thread():
        short, long = (_seconds(train, _random(count, image)) for count in (few, many))
        judged = _seconds(judge, _random(chunk, image)) / chunk
    an_image = max(0.0, (long - short) / (many - few))
    return Speed(max(0.0, short - few * an_image), an_image, judged)


def _random(count: int, image: tuple[int, ...]) -> Tensor:
    """Images in the layout that the pools have."""
    x = torch.randn(count, *image)
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def _seconds(act: Callable[[Tensor], None], x: Tensor) -> float:
    """The shortest of several times, on this thread's own clock: others may be at work, too."""
    act(x)  # the first time is not like the others
    times: list[float] = []
    while sum(times) < TIMED:
        start = time.thread_time()
        act(x)
        times.append(time.thread_time() - start)
    return min(times)


class Estimator:
    """Seconds that runs take on one core; each network is timed when it is first asked about."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._speeds: dict[tuple[str, str], tuple[Sizes, bool, Speed]] = {}
        self._seconds: dict[str, float] = {}

    def seconds(self, config: Config) -> float:
        # Neither the seed nor the learning rate takes time, so that a grid is counted quickly.
        key = dataclasses.replace(config, seed=0, lr=1.0).identity()
        if key not in self._seconds:
            sizes, batch_norm, speed = self._speed(config)
            self._seconds[key] = speed.seconds(load_of(config, sizes, batch_norm))
        return self._seconds[key]

    def _speed(self, config: Config) -> tuple[Sizes, bool, Speed]:
        name, precision = config.benchmark, config.eval_precision
        if (name, precision) not in self._speeds:
            sizes, model = _sizes_and_model(config, self._data)
            net = FlatModel(model())
            speed = calibrate(net, sizes.image, precision)
            self._speeds[name, precision] = sizes, net.has_batch_norm, speed
        return self._speeds[name, precision]


def _sizes_and_model(
    config: Config, data: Path | None
) -> tuple[Sizes, Callable[[], torch.nn.Module]]:
    """Of a benchmark of the user's own from its data, which may say both."""
    recipe = Recipe.find(config.benchmark)
    if recipe.name in PAPER:
        return PAPER[recipe.name], recipe.model
    benchmark = recipe.build(config.seed, data, config.whitening)
    task = benchmark.tasks[0]
    image = tuple(benchmark.train.batch(task.train[:1]).x.shape[1:])
    return Sizes(len(task.train), len(task.test), len(task.classes), image), benchmark.model


def spoken(seconds: float) -> str:
    """`40 s`, `5 min`, `3 h 20 min`, `2 d 4 h`, `30 d`: no more of it than an estimate can say."""
    minutes = round(seconds / 60)
    hours, days = minutes // 60, minutes // 1440
    if minutes < 1:
        return f"{max(1, round(seconds))} s"
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h" if days < 10 else f"{days} d"
