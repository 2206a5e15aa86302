"""Benchmarks: pools of images on the device, and tasks as rows of these pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from twofold.augmentation import Augmentation
from twofold.benchmarks.tensors import checked, own_whitening
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


class Pool:
    """Images and labels on the device, from which batches are drawn by index.

    uint8 images are [N, H, W, C] and are whitened when they are drawn, so that they take a quarter
    of the memory. Floating-point inputs are used unchanged.
    """

    def __init__(self, images: Tensor, labels: Tensor, whiten: Constants | None) -> None:
        self.images, self.labels, self.whitening = images, labels, whiten
        self._mean = self._scale = None
        if whiten is not None:
            mean, deviation = (torch.tensor(v, device=images.device) * 255 for v in whiten)
            self._mean, self._scale = mean, 1 / deviation

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor | Rows) -> Batch:
        index = torch.as_tensor(rows, device=self.labels.device)
        x = self.images.index_select(0, index)
        if self._mean is not None and self._scale is not None:
            x = torch.sub(x, self._mean).mul_(self._scale).permute(0, 3, 1, 2)  # channels last
        return Batch(x, self.labels.index_select(0, index), index)


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

    augmentation: ClassVar[Augmentation] = (
        "none"  # see `Recipe`; a user's own data stay as they are
    )

    def defaults(self, mode: Mode, objective: str, lr: Mapping[Mode, float]) -> dict[str, Any]:
        """Return the default settings of a run: see `Recipe.defaults`."""
        return usual(mode, lr)

    def sizes(self) -> Sizes:
        """Return the first task in numbers."""
        task = self.tasks[0]
        image = tuple(self.train.batch(task.train[:1]).x.shape[1:])
        return Sizes(len(task.train), len(task.test), len(task.classes), image)

    @classmethod
    def from_tensors(
        cls,
        name: str,
        tasks: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]],
        *,
        model: Callable[[], nn.Module] | None = None,
        offline_iterations: int = 1000,
    ) -> Benchmark:
        """Return a benchmark of your own data.

        A task is train inputs, train labels, test inputs and test labels. Labels count from 0.
        Inputs have the same type and shape in all tasks. uint8 images [N, H, W, C] are whitened
        with the statistics of the training set. Floating-point inputs are used unchanged, in
        float32. The default `model` is an MLP with two hidden layers of 400. If no two tasks share
        a class, the benchmark is class-incremental.
        """
        parts = checked(name, tasks)
        x_train, y_train, x_test, y_test = map(torch.cat, zip(*parts, strict=True))
        whiten = own_whitening(x_train) if x_train.dtype == torch.uint8 else None
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
        inputs = x_train[0].numel()
        return cls(
            name=name,
            scenario="class" if len(set(labels_used)) == len(labels_used) else "domain",
            train=Pool(x_train, y_train, whiten),
            test=Pool(x_test, y_test, whiten),
            tasks=tuple(built_tasks),
            model=model or (lambda: mlp(outputs, inputs)),
            offline_iterations=offline_iterations,
        )


class Recipe:
    """The construction of a named benchmark from its dataset. Subclass it in this folder.

    online_batch_size: the default batch size in online mode.
    tuned_lr: default offline learning rates by objective, where they differ from the usual ones.
    augmentation: how objectives that augment images do so, unless their option says otherwise.
    published_whitening: constants for whitening instead of the training set's own; or None.
    published_sizes: the benchmark in numbers, so that runs can be planned without its data.
    """

    name: ClassVar[str]
    known: ClassVar[dict[str, type[Recipe]]] = {}
    title: ClassVar[str]
    about: ClassVar[str]
    dataset: ClassVar[str | None]  # None if the recipe overrides `build`
    scenario: ClassVar[Scenario]
    tasks: ClassVar[int]
    offline_iterations: ClassVar[int]
    online_batch_size: ClassVar[int] = 10
    tuned_lr: ClassVar[Mapping[str, float]] = {}
    augmentation: ClassVar[Augmentation] = "none"
    published_whitening: ClassVar[Constants | None] = None
    published_sizes: ClassVar[Sizes | None] = None

    def __init_subclass__(cls, *, name: str | None = None) -> None:
        if name is not None:
            register("benchmark", cls.known, name, cls)
            cls.name = name

    @classmethod
    def find(cls, name: str) -> type[Recipe]:
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

        Their contents are then part of a run's identity. Without files, `build` is called once
        before training, and its tensors are.
        """
        return ()

    @classmethod
    def model(cls) -> nn.Module:
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
