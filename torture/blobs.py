"""A plugin: a benchmark that needs no data, and a routine that takes its time."""

import time
from dataclasses import dataclass

import torch
from torch import nn

from twofold import Benchmark, Recipe, Routine


class Blobs(Recipe, name="blobs"):
    title, about, dataset, scenario = "Blobs", "made on the spot", None, "domain"
    tasks, offline_iterations = 2, 25

    @classmethod
    def build(cls, seed, folder=None, whitening="train", device="cpu"):
        random = torch.Generator().manual_seed(seed)

        def part(count):
            y = torch.arange(count) % 3
            return torch.randn(count, 8, generator=random) + y[:, None], y

        return Benchmark.from_tensors(
            "blobs",
            [(*part(60), *part(30)) for _ in range(cls.tasks)],
            model=lambda: nn.Linear(8, 3),
            offline_iterations=cls.offline_iterations,
        )


@dataclass
class Slow(Routine, name="slow"):
    """Give others the time to disturb a run."""

    seconds: float = 0.05

    def direct(self, g, step):
        time.sleep(self.seconds)
        return g
