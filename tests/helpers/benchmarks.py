"""Small benchmarks made on the spot: learned in no time, with batch norm or without."""

from __future__ import annotations

import torch
from torch import nn

from twofold import Benchmark


def class_benchmark(tasks: int = 3, norm: bool = True, examples: int = 60) -> Benchmark:
    """Class-incremental: 3 classes a task, 8x8 blobs; a network with batch norm or not."""
    return _benchmark(tasks, norm, examples, shared_classes=False)


def domain_benchmark(tasks: int = 3, norm: bool = False, examples: int = 60) -> Benchmark:
    """Domain-incremental: the same 3 classes in every task, shifted."""
    return _benchmark(tasks, norm, examples, shared_classes=True)


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
