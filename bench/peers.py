"""twofold against Avalanche on the same work: `make bench-peers`, in an environment of its own.

Networks, images, batches, memories and evaluated images are the same in number and size, all
images are in memory, and everything runs on one thread. An iteration is timed from its start to
the start of the next one, so that loading the next batch counts.

Avalanche reads images in two ways. "As loaded" is what its own benchmarks do: pictures that are
turned into tensors and whitened whenever they are read. "Ready" are tensors that need nothing more.
"""

from __future__ import annotations

import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from avalanche.benchmarks import dataset_benchmark, tensors_benchmark
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training import AGEM, GEM, Replay
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin, SupervisedPlugin
from limits import seconds_at_peak
from measuring import Row, Stepper, benchmark
from PIL import Image
from torch import nn
from torchvision.transforms import Compose, Normalize, ToTensor

from twofold import Benchmark, Watch
from twofold.adapters.avalanche import TwofoldPlugin, sets_of
from twofold.benchmarks.base import Pool, Rows

EVALUATED = 1000  # images per task
STORED = 2000  # images of a past task in the memory


class Work(NamedTuple):
    """What both sides do."""

    title: str
    benchmark: str
    task: int
    batch_size: int
    lr: float
    chunk: int  # images that Avalanche evaluates at once
    iterations: int  # per turn
    rounds: int


MNIST = Work("Rotated MNIST", "rotated-mnist", 2, 128, 0.1, 1000, 10, 5)
CIFAR = Work("online Split CIFAR-100", "split-cifar100", 2, 10, 0.01, 100, 1, 3)


def rows() -> list[Row]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return [
        *_replaying(MNIST, {"as loaded": (10, 40, 10), "ready": (2, 2, 1.2)}),
        *_replaying(CIFAR, {"as loaded": (1.5, 3, 1.3), "ready": (1.2, 1.2, 1.0)}),
        *_projecting(MNIST._replace(task=3, iterations=20, rounds=7)),
    ]


def _replaying(work: Work, targets: dict[str, tuple[float, float, float]]) -> list[Row]:
    """ER: evaluation alone, whole iterations with it, and training alone."""
    data, rows = benchmark(work.benchmark), []
    memory = {"mem_size": STORED * (work.task - 1)}
    for way, (evaluation, whole, training) in targets.items():
        loops: dict[str, Avalanche | Own] = {
            evaluator: Avalanche(Replay, data, work, way, evaluator, **memory)
            for evaluator in ("avalanche", "watch", "nothing")
        }
        loops |= {"own": Own(data, "er", work, True), "own training": Own(data, "er", work, False)}
        took = _in_turns(loops, work.rounds)
        place = f"{work.title}, task {work.task}, images {way}"
        watch_seconds = took["watch"] - took["nothing"]
        avalanche_seconds = took["avalanche"] - took["nothing"]
        ratios = {
            "evaluation: Avalanche / Watch": (avalanche_seconds / watch_seconds, evaluation),
            "ER with evaluation: Avalanche / twofold": (took["avalanche"] / took["own"], whole),
            "ER alone: Avalanche / twofold": (took["nothing"] / took["own training"], training),
        }
        least = {
            tasks: seconds_at_peak(data, work.batch_size, tasks, time.process_time)["fp32"]
            for tasks in (0, work.task)
        }
        took |= {"products alone": least[work.task], "those of training": least[0]}
        note = ", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in took.items())
        for name, (ratio, target) in ratios.items():
            rows.append(Row(f"{name}, {place}", ratio, "at least", target, note=note))
    return rows


def _projecting(work: Work) -> list[Row]:
    """Training steps of A-GEM and GEM without evaluation, on as many reference examples."""
    data, rows = benchmark(work.benchmark), []
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "agem": (AGEM, {"patterns_per_exp": STORED, "sample_size": work.batch_size}),
        "gem": (GEM, {"patterns_per_exp": work.batch_size, "memory_strength": 0.0}),
    }
    for method, (strategy, given) in kinds.items():
        for way in ("as loaded", "ready"):
            took = _in_turns(
                {
                    "avalanche": Avalanche(strategy, data, work, way, "nothing", **given),
                    "own": Own(data, method, work, False),
                },
                work.rounds,
            )
            place = f"{work.title}, task {work.task}, images {way}"
            name = f"training step of {method}: Avalanche / twofold, {place}"
            rows.append(Row(name, took["avalanche"] / took["own"], "at least", 1.0))
    return rows


class Avalanche:
    """A strategy of Avalanche in a task, with the memory of the tasks before it.

    evaluator: what evaluates after every iteration: `avalanche`, `watch` or `nothing`.
    """

    def __init__(
        self,
        strategy: Callable[..., Any],
        own: Benchmark,
        work: Work,
        way: str,
        evaluator: str,
        **given: Any,
    ) -> None:
        torch.manual_seed(0)
        experiences = _benchmark(own, work, way)
        *past, self.experience = experiences.train_stream
        self.tests = list(experiences.test_stream)
        model, self.clock = own.model(), Clock()
        metrics = accuracy_metrics(experience=True) if evaluator == "avalanche" else []
        self.strategy = strategy(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=work.lr, momentum=0.9),
            criterion=nn.CrossEntropyLoss(),
            train_mb_size=work.batch_size,
            eval_mb_size=work.chunk,
            plugins=[self.clock],
            evaluator=EvaluationPlugin(metrics, loggers=[]),
            **given,
        )
        self.strategy.train_epochs = 0  # past tasks only fill the memory
        for experience in past:
            self.strategy.train(experience)
        self.strategy.train_epochs = 1
        if evaluator == "watch":
            self.strategy.plugins.append(TwofoldPlugin(self._watch(model)))
        for plugin in self.strategy.plugins:  # the timed task is repeated, and never stored
            if isinstance(plugin, ReplayPlugin):
                plugin.storage_policy.update = lambda *_, **__: None
            elif hasattr(plugin, "update_memory"):
                plugin.update_memory = lambda *_, **__: None
            elif type(plugin).__name__ == "PeriodicEval" and evaluator == "avalanche":
                plugin.eval_every, plugin.peval_mode = 1, "iteration"
        self._evaluated = [self.tests] if evaluator == "avalanche" else []

    def _watch(self, model: nn.Module) -> Watch:
        """Return a watch that has seen the past tasks."""
        names = {"benchmark": "bench", "method": "bench"}
        watch = Watch(sets_of(self.tests), size=EVALUATED, **names)
        for task in range(len(self.tests) - 1):
            watch.task(task)
            watch(model)
        return watch

    def seconds(self) -> list[float]:
        """Return the seconds of some iterations."""
        self.clock.starts.clear()
        self.strategy.clock.train_exp_counter = len(self.tests) - 1
        self.strategy.train(self.experience, eval_streams=self._evaluated)
        return _differences(self.clock.starts)


class Clock(SupervisedPlugin):
    """Notes when iterations start."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[float] = []

    def before_training_iteration(self, strategy: Any, **others: Any) -> None:
        self.starts.append(time.process_time())


class Own:
    """twofold's own loop in the same task."""

    def __init__(self, own: Benchmark, method: str, work: Work, evaluates: bool) -> None:
        self._stepper = Stepper(own, method, work.batch_size, work.task, work.lr)
        self._iterations, self._evaluates = work.iterations, evaluates

    def seconds(self) -> list[float]:
        """Return the seconds of some iterations."""
        starts = []
        for _ in range(self._iterations + 1):
            starts.append(time.process_time())
            self._stepper.step()
            if self._evaluates:
                self._stepper.evaluate()
        return _differences(starts)


class Pictures(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """Images as Avalanche's benchmarks have them: turned into tensors whenever they are read."""

    def __init__(self, pool: Pool, rows: Rows) -> None:
        index = torch.as_tensor(rows)
        images = pool.images[index].squeeze(3) if pool.images.shape[3] == 1 else pool.images[index]
        self._pictures = [Image.fromarray(image.numpy()) for image in images]
        self.targets = pool.labels[index].tolist()
        channels = pool.images.shape[3]
        self._transform = Compose([ToTensor(), Normalize([0.5] * channels, [0.3] * channels)])

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return self._transform(self._pictures[row]), self.targets[row]


def _benchmark(own: Benchmark, work: Work, way: str) -> Any:
    """Return the tasks for Avalanche: past ones to fill the memory, and one to be timed."""
    timed = (work.iterations + 1) * work.batch_size
    lengths = [*[max(STORED, timed)] * (work.task - 1), timed]
    tasks = own.tasks[: work.task]
    train = [(own.train, each.train[:n]) for each, n in zip(tasks, lengths, strict=True)]
    test = [(own.test, each.test[:EVALUATED]) for each in tasks]
    if way == "as loaded":
        parts = ([Pictures(*each) for each in half] for half in (train, test))
        return dataset_benchmark(*parts)
    train_tensors, test_tensors = ([_ready(*each) for each in half] for half in (train, test))
    labels = [0] * work.task
    return tensors_benchmark(
        train_tensors=train_tensors, test_tensors=test_tensors, task_labels=labels
    )


def _ready(pool: Pool, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
    batch = pool.batch(rows)
    return batch.x.contiguous(), batch.y


def _in_turns(loops: Mapping[str, Avalanche | Own], rounds: int) -> dict[str, float]:
    """Return the median seconds of an iteration of each loop, without a round to warm up."""
    found: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(rounds + 1):
        for name, loop in loops.items():
            seconds = loop.seconds()
            if turn:
                found[name] += seconds
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def _differences(starts: Sequence[float]) -> list[float]:
    return [end - start for start, end in itertools.pairwise(starts)]
