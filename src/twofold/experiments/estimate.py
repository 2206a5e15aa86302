"""Estimates of the time that runs take, from their loads and the speed of the network.

Components state their loads: forward and backward passes, and images in evaluation. The speed of
both is measured for about a second on random images: whole iterations of the loop, with drawing a
batch and writing curves, which decide the time of small networks. A command also has to start.
Augmentation, GEM's quadratic program and the cache that workers share are left out.

What is left out, and other programs on the machine, show in the times of finished runs: estimates
are corrected by them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from twofold.benchmarks import Benchmark, Recipe
from twofold.benchmarks.base import Sizes
from twofold.choices import Precision
from twofold.cost import Load
from twofold.errors import UserError
from twofold.evaluation.predictors import chunk_size
from twofold.experiments.archive import identity_of
from twofold.experiments.checksums import DamagedRunError
from twofold.experiments.config import Config
from twofold.experiments.digests import serving_identities, version_of, with_data
from twofold.experiments.execution import one_thread
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.experiments.summary import hardware
from twofold.memories.reading import memory_of
from twofold.method import Method
from twofold.models import FlatModel
from twofold.models.inference import Inference
from twofold.models.precision import bf16_works
from twofold.objectives.base import Objective
from twofold.routines import Needs, Routine
from twofold.routines.base import needs_of
from twofold.sequence import read_order
from twofold.settings import Settings
from twofold.training import Training

BACKWARD = 2 / 3  # the backward share of a pass: two products per layer, and one in the forward
FIXED: tuple[Precision, ...] = ("fp32", "bf16")
NO_BF16 = (
    "bf16 does not work on this processor, so evaluation takes fp32; the predictions are the same"
)
NOTICEABLE = 1.05  # a slowdown; less is noise
TIMED = 0.3  # the least number of seconds of each measurement
REPEATED = 3  # the least number of times: one alone may be disturbed
NEWEST = 50  # finished runs that correct estimates: before, the machine may have been busier
MOST = 1000  # iterations with which a network is timed


def load_of(config: Config, sizes: Sizes, batch_norm: bool) -> Load:
    """Return the load of a whole run."""
    recipe, (objective, routines) = Recipe.find(config.benchmark), config.make_components()
    sequence, sizes = config.sequence(recipe.tasks), _arranged(config, sizes)
    iterations = config.iterations_of(sizes.train, recipe.offline_iterations)
    evaluations = config.schedule.count(iterations)
    checks = iterations - evaluations if config.schedule.exact_min else 0
    # If a routine has different weights evaluated, the trained ones are evaluated as well.
    times = 2 if any(routine.overrides("evaluated") for routine in routines) else 1
    memory, total = memory_of(config), Load()
    apart = recipe.scenario == "class" and not config.parts  # each task has its own classes
    share = memory.share(sizes.classes * (recipe.tasks if apart else 1))
    # A memory may set the size of the replay batch.
    more = (memory.replay or config.batch_size) - config.batch_size
    for task in range(1, len(sequence) + 1):
        told = 2 if config.task_free else task  # by `Course.told`
        total += iteration(objective, routines, told, config.batch_size, batch_norm) * iterations
        if told > 1 and objective.replays == "total":
            total += Load(images=more * iterations)
        tests = 1 if config.parts else len(set(sequence[:task]))
        images = Load(evaluated=tests * min(config.eval_size, sizes.test))
        images += objective.evaluation_cost(task, sizes.classes, share)
        for routine in routines:
            images += routine.evaluation_cost()
        past = (task - 1) * min(config.eval_size, sizes.test)  # images of past tasks
        checked = Load(evaluated=recipe.checked_share * past)
        at_end = Load(evaluated=tests * sizes.test)  # all test images
        total += (images * evaluations + checked * checks + at_end) * times
    return total


def _arranged(config: Config, sizes: Sizes) -> Sizes:
    """Return the first task in numbers, if tasks are parts of all data."""
    if not config.parts:
        return sizes
    recipe = Recipe.find(config.benchmark)
    tasks = len(read_order(config.order) or ()) if config.order else recipe.tasks
    return sizes._replace(
        train=tasks * sizes.train // config.parts,
        test=tasks * sizes.test,
        classes=sizes.classes * (tasks if recipe.scenario == "class" else 1),
    )


def iteration(
    objective: Objective, routines: Sequence[Routine], task: int, b: int, batch_norm: bool
) -> Load:
    """Return the load of one training iteration, in the steps of `Training._iterate`."""
    needs, past = needs_of(routines), task - 1
    cost = objective.cost(task, b, batch_norm)
    total = cost * 2 if Needs.ELSEWHERE in needs else cost  # again, at different weights
    if past:
        total += _reference_load(objective, needs, cost, past, b, batch_norm)
    for routine in routines:
        total += routine.cost(task)
    for term in objective.terms:
        total += term.cost(task, cost.images)
    return total + objective.further_cost(task, b)


def _reference_load(
    objective: Objective, needs: Needs, own: Load, past: int, b: int, batch_norm: bool
) -> Load:
    """Return the load of the gradients on old data that routines need."""
    replays = objective.replays
    total = Load()
    if Needs.OLD in needs and replays != "nothing":
        # A separate g_old takes one more backward pass or, without batch norm, two forward passes.
        total += own * BACKWARD if batch_norm else Load(passes=1)
    if Needs.PER_TASK in needs:
        total += Load(past, past * b)
    if Needs.FROZEN_OLD in needs or (Needs.OLD in needs and replays == "nothing"):
        total += Load(1, b) * (past if replays == "each" else 1)
    return total


@dataclass(frozen=True)
class Speed:
    """The speed of a network on one core: seconds per pass, image in it and evaluated image."""

    a_pass: float
    image: float
    evaluated: float

    def seconds(self, load: Load) -> float:
        return (
            load.passes * self.a_pass + load.images * self.image + load.evaluated * self.evaluated
        )


# In evaluated images, and so the same on every machine: an image in training is passed forwards
# once and backwards, which takes twice as long.
COST = Speed(a_pass=0.0, image=3.0, evaluated=1.0)


def calibrate(
    model: Callable[[], nn.Module], image: tuple[int, ...], precision: Precision, tokens: bool
) -> Speed:
    """Time iterations of two sizes, which separates the time per image from the time per pass."""
    net = FlatModel(model())
    small, large = (4, 16) if net.has_batch_norm else (16, 256)
    with one_thread():
        short, long = (iteration_seconds(model, image, b, tokens) for b in (small, large))
        dtype = torch.bfloat16 if precision == "bf16" and bf16_works() else torch.float32
        evaluated = evaluation_seconds(net, image, dtype, tokens)
    an_image = max(0.0, (long - short) / (large - small))
    return Speed(max(0.0, short - small * an_image), an_image, evaluated)


class _EnoughError(Exception):
    """An iteration has been timed often enough."""


def iteration_seconds(
    model: Callable[[], nn.Module], image: tuple[int, ...], batch_size: int, tokens: bool = False
) -> float:
    """Time an iteration of the loop, from drawing a batch to writing its curves."""
    x, y = _stored(2 * batch_size, image, tokens), torch.arange(2 * batch_size) % 2
    benchmark = Benchmark.from_tensors("timed", [(x, y, x[:2], y[:2])], model=model)
    settings = Settings(batch_size=batch_size, iterations=MOST, eval_schedule=f"every:{MOST}")
    training = Training(benchmark, *Method.parse("finetune").make(), settings)
    ends: list[float] = []

    def note() -> None:
        ends.append(time.thread_time())
        if ends[-1] - ends[0] > TIMED and len(ends) > REPEATED:
            raise _EnoughError

    with contextlib.suppress(_EnoughError):
        training.run(note)
    return statistics.median(end - start for start, end in itertools.pairwise(ends))


def evaluation_seconds(
    net: FlatModel, image: tuple[int, ...], dtype: torch.dtype, tokens: bool = False
) -> float:
    """Time the evaluation of an image in a precision."""
    chunk = chunk_size(net, _random(1, image, tokens), dtype)
    plain = net.takes_task or tokens  # such a network is evaluated as it is
    inference = Inference(net, dtype)
    inference.follow()

    @torch.inference_mode()
    def evaluate(x: Tensor) -> None:
        if plain:
            net.all_logits(x, torch.zeros(len(x), dtype=torch.long))
        else:
            inference(x)

    return _seconds(evaluate, _random(chunk, image, tokens)) / chunk


def _stored(count: int, image: tuple[int, ...], tokens: bool) -> Tensor:
    """Return random inputs as a pool stores them: pictures in bytes, channels last."""
    if tokens or len(image) != 3:
        return _random(count, image, tokens)
    channels, *size = image
    return torch.randint(256, (count, *size, channels), dtype=torch.uint8)


def _random(count: int, image: tuple[int, ...], tokens: bool = False) -> Tensor:
    """Return random inputs of a network: images, or the token that every network knows."""
    if tokens:
        return torch.zeros(count, *image, dtype=torch.long)
    x = torch.randn(count, *image)
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def _seconds(act: Callable[[Tensor], None], x: Tensor) -> float:
    """Return the shortest of several times, on this thread's own clock: the machine may be busy."""
    act(x)  # the first call takes longer
    times: list[float] = []
    while sum(times) < TIMED or len(times) < REPEATED:
        start = time.thread_time()
        act(x)
        times.append(time.thread_time() - start)
    return min(times)


class Estimator:
    """Estimates of the seconds of runs on one core; a network is timed when first needed.

    speed: a fixed speed of all networks instead, for estimates that every machine agrees on.
    finished: runs by which to correct estimates, if this kind of machine has trained them.
    """

    def __init__(
        self,
        data: Path | None = None,
        speed: Speed | None = None,
        finished: Iterable[Run] = (),
    ) -> None:
        self._data, self._fixed = data, speed
        self._finished = [run for run in finished if _is_comparable(run)]
        self._speeds: dict[tuple[str, str], tuple[Sizes, bool, Speed]] = {}
        self._seconds: dict[str, float] = {}

    def seconds(self, config: Config) -> float:
        # The seed and the learning rate do not change the time, so a grid needs few estimates.
        key = repr(dataclasses.replace(config, seed=0, lr=1.0))
        if key not in self._seconds:
            self._seconds[key] = self._counted(config) * self._correction(config)
        return self._seconds[key]

    def _counted(self, config: Config) -> float:
        """Return the seconds that follow from the load and the speed."""
        sizes, batch_norm, speed = self._speed(config)
        return speed.seconds(load_of(config, sizes, batch_norm))

    def _correction(self, config: Config) -> float:
        """Return how many times longer finished runs took, those of the method if there are any."""
        runs = [run for run in self._finished if run.config.benchmark == config.benchmark]
        alike = [run for run in runs if run.config.method == config.method] or runs
        ratios = [_seconds_of(run) / self._counted(run.config) for run in alike]
        return statistics.median(ratios) if ratios else 1.0

    def _speed(self, config: Config) -> tuple[Sizes, bool, Speed]:
        name, precision = config.benchmark, config.eval_precision
        if precision == "auto":  # the faster one, by the same measurements
            fixed = (dataclasses.replace(config, eval_precision=one) for one in FIXED)
            return min(map(self._speed, fixed), key=lambda measured: measured[2].evaluated)
        if (name, precision) not in self._speeds:
            sizes, model = _sizes_and_model(config, self._data)
            speed = self._fixed or calibrate(model, sizes.image, precision, sizes.tokens)
            self._speeds[name, precision] = sizes, FlatModel(model()).has_batch_norm, speed
        return self._speeds[name, precision]

    def slowdown(self, config: Config) -> float:
        """Return how many times slower a run's evaluation is than in fp32."""
        exact = dataclasses.replace(config, eval_precision="fp32")
        seconds, fp32 = (self._speed(each)[2].evaluated for each in (config, exact))
        return seconds / fp32


def _is_comparable(run: Run) -> bool:
    """Tell whether a processor of this kind has trained a run whose load is known."""
    if run.config.own or run.config.device != "cpu" or not _seconds_of(run):
        return False
    try:
        run.config.make_components()
    except UserError:  # a plugin's, which is not imported now
        return False
    kind: dict[str, Any] = run.summary.get("made_with", {})
    return hardware("cpu").items() <= kind.items()


def _seconds_of(run: Run) -> float:
    seconds: dict[str, float] = run.summary.get("seconds", {})
    return sum(seconds.values())


def newest(store: Store) -> list[Run]:
    """Return the readable runs that finished last; none of an archive, which has no times."""
    times: dict[Path, float] = {}
    for folder in store.folders():
        with contextlib.suppress(OSError):  # a different process may have removed it
            times[folder] = folder.stat().st_mtime
    runs = []
    for folder in sorted(times, key=lambda folder: times[folder])[-NEWEST:]:
        with contextlib.suppress(DamagedRunError, UserError):
            runs.append(Run.of_store(folder))
    return runs


def relative_costs(configs: Sequence[Config], data: Path | None) -> list[float]:
    """Return what each run costs beside the others, without timing anything.

    All runs on a user's own tensors count as equal.
    """
    estimator = Estimator(data, COST)
    return [1.0 if config.own else estimator.seconds(config) for config in configs]


def slow_precision(configs: Iterable[Config], data: Path | None) -> list[str]:
    """Return a line for each benchmark whose runs ask for bf16 and are slower in it.

    It is one line for all of them where the processor cannot compute in bf16.
    """
    estimator, lines = Estimator(data), []
    requests = {each.benchmark: each for each in configs if each.eval_precision == "bf16"}
    if not bf16_works() and any(each.device == "cpu" for each in requests.values()):
        return [NO_BF16]
    for config in requests.values():
        ratio = estimator.slowdown(config)
        if ratio > NOTICEABLE:
            lines.append(
                f"bf16 is {ratio:.1f} times slower than fp32 on this processor for "
                f"{config.benchmark}; --eval-precision auto takes the faster one"
            )
    return lines


def seconds_left(configs: Sequence[Config], store: Store, data: Path | None) -> list[float | None]:
    """Return the seconds of each run on one core; None for those that are in the store."""
    identities = {identity_of(folder.name) for folder in store.folders()}
    estimator = Estimator(data, finished=newest(store))

    def done(config: Config) -> bool:
        if identities.isdisjoint(serving_identities(config)):
            return False
        return config.keep_weights == "none" or store.find(config) is not None  # with its weights

    complete = (with_data(config, data) for config in configs)
    return [None if done(config) else estimator.seconds(config) for config in complete]


def command_seconds(runs: Sequence[float], workers: int) -> float:
    """Return the seconds of a command whose runs take these on one core each."""
    return start_seconds() + max(sum(runs) / workers, max(runs)) if runs else 0.0


@functools.cache
def start_seconds() -> float:
    """Time the imports of a command, which the server of its workers repeats."""
    timed = "import time, twofold.experiments.execution; print(time.process_time())"
    started = subprocess.run([sys.executable, "-c", timed], capture_output=True, check=False)
    return 2 * float(started.stdout or 0)


def _sizes_and_model(
    config: Config, data: Path | None
) -> tuple[Sizes, Callable[[], torch.nn.Module]]:
    """Return both from the recipe, unless it states no sizes or the data may have others."""
    recipe = Recipe.find(config.benchmark)
    if recipe.published_sizes is not None and not version_of(recipe.dataset, data):
        return recipe.published_sizes, recipe.model
    benchmark = recipe.build(config.seed, data, config.whitening)
    return benchmark.sizes(), benchmark.model
