"""Benchmarks: pools of images on the device, and tasks as rows of these pools."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from twofold.augmentation import Augmentation
from twofold.benchmarks.items import read
from twofold.benchmarks.maps import Mapped, pooled
from twofold.benchmarks.tensors import TOKENS, as_inputs, checked, own_whitening
from twofold.choices import Mode, Scenario, Whitening
from twofold.component import register
from twofold.datasets import Dataset, load
from twofold.datasets.statistics import Constants
from twofold.errors import UserError, unknown
from twofold.models import mlp

Rows = NDArray[np.int64]


class Batch(NamedTuple):
    """Inputs ready for the network, their labels, and their rows in the pool."""

    x: Tensor
    y: Tensor
    rows: Tensor
    tasks: Tensor | None = None  # with scenario task, the ids of their tasks, counted from 0

    def at(self, places: Tensor) -> Batch:
        """Return the examples at these places."""
        tasks = None if self.tasks is None else self.tasks[places]
        return Batch(self.x[places], self.y[places], self.rows[places], tasks)

    def split(self, size: int) -> list[Batch]:
        """Return batches of at most this many examples."""
        parts = [self.x.split(size), self.y.split(size), self.rows.split(size)]
        parts += [] if self.tasks is None else [self.tasks.split(size)]
        return [Batch(*piece) for piece in zip(*parts, strict=True)]

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Return all examples of several batches."""
        x, y, rows = (torch.cat([batch[k] for batch in batches]) for k in range(3))  # type: ignore[misc]
        ids = [batch.tasks for batch in batches if batch.tasks is not None]
        return cls(x, y, rows, torch.cat(ids) if len(ids) == len(batches) else None)


class Pool:
    """Images and labels on the device, from which batches are drawn by index.

    uint8 images are [N, H, W, C] and are whitened when they are drawn, so that they take a quarter
    of the memory. Floating-point inputs are used unchanged, and whole numbers (tokens) reach the
    network as int64. Inputs in files are read as they are drawn.

    tasks: the id of each example's task, if batches come with it.
    """

    def __init__(
        self,
        images: Tensor | Mapped,
        labels: Tensor,
        whiten: Constants | None,
        tasks: Tensor | None = None,
    ) -> None:
        self.images, self.labels, self.whitening, self.tasks = images, labels, whiten, tasks
        self._mean = self._scale = None
        if whiten is not None:
            mean, deviation = (torch.tensor(v, device=labels.device) * 255 for v in whiten)
            self._mean, self._scale = mean, 1 / deviation

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor | Rows) -> Batch:
        index = torch.as_tensor(rows, device=self.labels.device)
        x = self.images.index_select(0, index)
        if x.dtype in TOKENS:
            x = x.long()
        if self._mean is not None and self._scale is not None:
            x = torch.sub(x, self._mean).mul_(self._scale).permute(0, 3, 1, 2)  # channels last
        tasks = None if self.tasks is None else self.tasks.index_select(0, index)
        return Batch(x, self.labels.index_select(0, index), index, tasks)


@dataclass(frozen=True)
class Task:
    """One task: its rows of the training pool and of the test pool, and its classes."""

    train: Rows
    test: Rows
    classes: tuple[int, ...]


class Sizes(NamedTuple):
    """A benchmark in numbers: training images, test images and classes per task."""

    train: int
    test: int
    classes: int
    image: tuple[int, ...]  # as the network sees it: channels, height, width
    tokens: bool = False  # whether it consists of whole numbers


def usual(mode: Mode, lr: Mapping[Mode, float]) -> dict[str, Any]:
    """Return the defaults of training on any benchmark, for an objective's learning rates."""
    return {"lr": lr[mode], "batch_size": 128 if mode == "offline" else 10}


@dataclass(frozen=True)
class Benchmark:
    """A sequence of tasks and the network that learns them."""

    name: str
    scenario: Scenario
    train: Pool
    test: Pool
    tasks: tuple[Task, ...]
    model: Callable[[], nn.Module]
    offline_iterations: int  # per task
    ordered: bool = False  # whether training keeps the order of the rows in a task
    task_ids: bool = True  # whether the task of an example is known, as scenario task needs

    augmentation: ClassVar[Augmentation] = (
        "none"  # see `Recipe`; a user's own data stay as they are
    )

    def defaults(self, mode: Mode, objective: str, lr: Mapping[Mode, float]) -> dict[str, Any]:
        """Return the default settings of a run: see `Recipe.defaults`."""
        return usual(mode, lr)

    def sizes(self) -> Sizes:
        """Return the first task in numbers."""
        task = self.tasks[0]
        x = self.train.batch(task.train[:1]).x
        tokens = not x.is_floating_point()
        return Sizes(len(task.train), len(task.test), len(task.classes), (*x.shape[1:],), tokens)

    @classmethod
    def from_tensors(
        cls,
        name: str,
        tasks: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]],
        *,
        model: Callable[[], nn.Module] | None = None,
        offline_iterations: int = 1000,
        ordered: bool = False,
    ) -> Benchmark:
        """Return a benchmark of your own data.

        A task is train inputs, train labels, test inputs and test labels. Labels count from 0.
        Inputs have the same type and shape in all tasks. uint8 images [N, H, W, C] are whitened
        with the statistics of the training set. Floating-point inputs are used unchanged, in
        float32. int16, int32 and int64 inputs are tokens, which reach the network as int64. Memory
        maps are read as they are needed. The default `model` is an MLP with two hidden layers of
        400. If no two tasks share a class, the benchmark is class-incremental. With `ordered`,
        every pass over a task keeps the order of its training examples, as a stream does.
        """
        parts = checked(name, tasks)
        inputs_train, labels_train, inputs_test, labels_test = zip(*parts, strict=True)
        x_train, x_test = (pooled(inputs, as_inputs) for inputs in (inputs_train, inputs_test))
        y_train, y_test = torch.cat(labels_train), torch.cat(labels_test)
        whiten = own_whitening(x_train) if x_train.dtype == torch.uint8 else None
        if model is None and x_train.dtype in TOKENS:
            raise UserError(
                f"benchmark {name!r}: tokens need a network with an embedding: give one as model"
            )
        built_tasks: list[Task] = []
        train_start = test_start = 0
        for _, y, _, y_t in parts:
            train_stop, test_stop = train_start + len(y), test_start + len(y_t)
            classes = tuple(y.unique().tolist())
            built_tasks.append(
                Task(np.arange(train_start, train_stop), np.arange(test_start, test_stop), classes)
            )
            train_start, test_start = train_stop, test_stop
        labels_used = [c for task in built_tasks for c in task.classes]
        outputs = max(labels_used) + 1
        inputs = math.prod(x_train.shape[1:])
        return cls(
            name=name,
            scenario="class" if len(set(labels_used)) == len(labels_used) else "domain",
            train=Pool(x_train, y_train, whiten),
            test=Pool(x_test, y_test, whiten),
            tasks=tuple(built_tasks),
            model=model or (lambda: mlp(outputs, inputs)),
            offline_iterations=offline_iterations,
            ordered=ordered,
        )

    @classmethod
    def from_datasets(
        cls,
        name: str,
        tasks: Sequence[tuple[Any, Any]],
        *,
        model: Callable[[], nn.Module] | None = None,
        offline_iterations: int = 1000,
    ) -> Benchmark:
        """Return a benchmark of torch datasets: one for training and one for tests per task.

        Their items are pairs of an input (a tensor, an array or a PIL image) and a label. All items
        are read once, now. What is said of inputs and labels in `from_tensors` applies.
        """
        given: Any = read(name, tasks)
        return cls.from_tensors(name, given, model=model, offline_iterations=offline_iterations)


class Recipe:
    """The construction of a named benchmark from its dataset. Subclass it to add one.

    online_batch_size: the default batch size in online mode.
    tuned_lr: default offline learning rates by objective, where they differ from the usual ones.
    augmentation: how objectives that augment images do so, unless their option says otherwise.
    published_whitening: constants for whitening instead of the training set's own; or None.
    published_sizes: the benchmark in numbers, so that runs can be planned without its data.
    checked_share: for estimates, the share of images in which `exact-min` looks for a new minimum.
        It is a little above MIN.
    """

    name: ClassVar[str]
    known: ClassVar[dict[str, type[Recipe]]] = {}
    title: ClassVar[str]
    about: ClassVar[str]
    dataset: ClassVar[str | None]  # None if the recipe overrides `build`
    scenario: ClassVar[Scenario]
    tasks: ClassVar[int]
    task_ids: ClassVar[bool] = True  # see `Benchmark`
    offline_iterations: ClassVar[int]
    online_batch_size: ClassVar[int] = 10
    tuned_lr: ClassVar[Mapping[str, float]] = {}
    augmentation: ClassVar[Augmentation] = "none"
    published_whitening: ClassVar[Constants | None] = None
    published_sizes: ClassVar[Sizes | None] = None
    checked_share: ClassVar[float] = 0.6

    def __init_subclass__(cls, *, name: str | None = None) -> None:
        if name is not None:
            register("benchmark", cls.known, name, cls)
            cls.name = name

    @classmethod
    def find(cls, name: str) -> type[Recipe]:
        """Return the benchmark of a name."""
        if name not in cls.known:
            raise unknown("benchmark", name, cls.known)
        return cls.known[name]

    @classmethod
    def defaults(cls, mode: Mode, objective: str, lr: Mapping[Mode, float]) -> dict[str, Any]:
        """Return the default settings of a run.

        lr: the objective's own learning rates, by mode.
        """
        if mode == "online":
            return {**usual(mode, lr), "batch_size": cls.online_batch_size}
        return {**usual(mode, lr), "lr": cls.tuned_lr.get(objective, lr[mode])}

    @classmethod
    def files(cls, folder: Path | None) -> Sequence[Path]:
        """Return all files that `build` reads, if they are known without reading them.

        Their contents are then part of a run's identity. Without files, `build` is called twice
        before training, and its tensors are.
        """
        return ()

    @classmethod
    def model(cls) -> nn.Module:
        """Return a new network for this benchmark."""
        raise NotImplementedError

    @classmethod
    def divide(cls, data: Dataset, seed: int) -> tuple[Images, Images, list[Task]]:
        """Return the training pool, the test pool and the tasks of this seed."""
        raise NotImplementedError

    @classmethod
    def build(
        cls,
        seed: int,
        folder: Path | None = None,
        whitening: Whitening = "train",
        device: torch.device | str = "cpu",
    ) -> Benchmark:
        """Return the benchmark of a seed, with its images on a device.

        folder: where the dataset is, or will be downloaded to.
        whitening: by the statistics of the training images, or by published constants.
        """
        assert cls.dataset is not None, "a benchmark without a dataset overrides build"
        if whitening == "published" and cls.published_whitening is None:
            raise UserError(f"{cls.name} has no published whitening: set whitening to train")
        data = load(cls.dataset, folder)
        train, test, tasks = cls.divide(data, seed)
        whiten = data.statistics if whitening == "train" else cls.published_whitening
        return Benchmark(
            name=cls.name,
            scenario=cls.scenario,
            train=Pool(train.images.to(device), train.labels.to(device), whiten),
            test=Pool(test.images.to(device), test.labels.to(device), whiten),
            tasks=tuple(tasks),
            model=cls.model,
            offline_iterations=cls.offline_iterations,
        )


class Images(NamedTuple):
    """Raw images (uint8 [N, H, W, C]) and labels, before whitening."""

    images: Tensor
    labels: Tensor
