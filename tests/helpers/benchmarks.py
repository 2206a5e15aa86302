"""Small benchmarks made on the spot: learned in no time, with batch norm or without."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import torch
from torch import nn

from twofold import Benchmark
from twofold.models import mlp


def class_benchmark(tasks: int = 3, norm: bool = True, examples: int = 60) -> Benchmark:
    """Class-incremental: 3 classes per task, 8x8 blobs; a network with batch norm or without."""
    return _benchmark(tasks, norm, examples, shared_classes=False)


def domain_benchmark(tasks: int = 3, norm: bool = False, examples: int = 60) -> Benchmark:
    """Domain-incremental: the same 3 classes in every task, shifted."""
    return _benchmark(tasks, norm, examples, shared_classes=True)


def dense_benchmark(tasks: int = 3, examples: int = 60) -> Benchmark:
    """Class-incremental, with a network of linear layers, most of them wider than a batch."""
    network = functools.partial(mlp, 3 * tasks, 3 * 8 * 8, 40)
    return dataclasses.replace(class_benchmark(tasks, False, examples), model=network)


def _benchmark(tasks: int, norm: bool, examples: int, shared_classes: bool) -> Benchmark:
    random = torch.Generator().manual_seed(0)
    outputs = 3 if shared_classes else 3 * tasks
    prototypes = torch.randn(3 * tasks, 3, 8, 8, generator=random)

    def images(task: int, count: int):
        kind = torch.arange(count) % 3
        x = prototypes[kind + 3 * task] + 0.5 * torch.randn(count, 3, 8, 8, generator=random)
        return x, kind + (0 if shared_classes else 3 * task)

    def model() -> nn.Module:
        layer = nn.BatchNorm2d(4) if norm else nn.Identity()
        return nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), layer, nn.ReLU(), nn.Flatten(), nn.Linear(256, outputs)
        )

    return Benchmark.from_tensors(
        "domain-toy" if shared_classes else "class-toy",
        [(*images(k, examples), *images(k, 30)) for k in range(tasks)],
        model=model,
        offline_iterations=12,
    )


def three_channel_images(count: int = 50) -> torch.Tensor:
    """uint8 images whose channels differ in mean and deviation."""
    random = torch.Generator().manual_seed(0)
    pixels = torch.randn(count, 6, 5, 3, generator=random) * torch.tensor([5.0, 20.0, 40.0])
    return (pixels + torch.tensor([50.0, 100.0, 150.0])).clamp(0, 255).to(torch.uint8)


def assert_published_whitening(benchmark: Benchmark, raw: np.ndarray, mean, deviation) -> None:
    """Compare some training images with the raw ones, whitened with these constants."""
    rows = np.arange(0, len(raw), max(1, len(raw) // 50))
    expected = (raw[rows] / 255 - np.array(mean)) / np.array(deviation)
    seen = benchmark.train.batch(rows).x.permute(0, 2, 3, 1)
    np.testing.assert_allclose(seen, expected, atol=1e-4)
