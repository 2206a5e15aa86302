"""Rotated MNIST: the whole of MNIST at 0, 80 and 160 degrees; domain-incremental."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.benchmarks.base import Images, Recipe, Sizes, Task
from twofold.datasets import Dataset, Split
from twofold.datasets.statistics import as_tensor
from twofold.models import mlp

ANGLES = (0, 80, 160)


class RotatedMnist(Recipe, name="rotated-mnist"):
    title = "Rotated MNIST"
    about = "3 tasks: MNIST rotated by 0, 80 and 160 degrees; MLP"
    dataset = "mnist"
    scenario = "domain"
    tasks = len(ANGLES)
    offline_iterations = 2000
    augmentation = "crop"
    published_sizes = Sizes(train=60_000, test=10_000, classes=10, image=(1, 28, 28))
    checked_share = 0.9
    published_whitening = ((0.1307,), (0.3081,))

    @classmethod
    def model(cls) -> nn.Module:
        return mlp()

    @classmethod
    def divide(cls, data: Dataset, seed: int) -> tuple[Images, Images, list[Task]]:
        train, test = _rotations(data.train), _rotations(data.test)
        n, m = len(data.train.labels), len(data.test.labels)
        classes = tuple(range(10))
        tasks = [
            Task(np.arange(k * n, (k + 1) * n), np.arange(k * m, (k + 1) * m), classes)
            for k in range(len(ANGLES))
        ]
        return train, test, tasks


def _rotations(split: Split) -> Images:
    images = as_tensor(split.images)
    return Images(
        torch.cat([rotate(images, angle) for angle in ANGLES]),
        as_tensor(split.labels).repeat(len(ANGLES)),
    )


def rotate(images: Tensor, angle: float) -> Tensor:
    """Rotate images (uint8 [N, H, W, C]) counter-clockwise about the centre, with black corners.

    Nearest-neighbour sampling only moves pixels, so the indices of pixels are rotated once and then
    applied to all images.
    """
    _, height, width, _ = images.shape
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    # The map from an output pixel to its input pixel, in coordinates of -1..1, y downwards.
    theta = torch.tensor([[[cos, -sin * height / width, 0], [sin * width / height, cos, 0]]])
    grid = F.affine_grid(theta.double(), [1, 1, height, width], align_corners=False)
    numbers = torch.arange(1.0, height * width + 1, dtype=torch.float64).view(1, 1, height, width)
    source = F.grid_sample(numbers, grid, mode="nearest", align_corners=False).long().flatten()
    outside = source == 0
    # numpy moves bytes five times as fast as torch's indexing.
    rotated = images.flatten(1, 2).numpy().take((source - 1).clamp(min=0).numpy(), axis=1)
    rotated[:, outside.numpy()] = 0  # black
    return torch.from_numpy(rotated).view_as(images)
