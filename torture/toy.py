"""A run that takes a moment: its configuration, and what it must give however it was disturbed."""

from __future__ import annotations

import torch
from torch import nn

from twofold import Benchmark
from twofold.experiments.config import Config, configure
from twofold.experiments.execution import Finished, execute, run_when_free
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

METHODS = ("er", "er+gem", "er+ema", "der(augment=none)", "bic(augment=none)")


def benchmark() -> Benchmark:
    random = torch.Generator().manual_seed(0)

    def part(count: int, task: int) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.arange(count) % 3 + 3 * task
        return torch.randn(count, 8, generator=random) + y[:, None], y

    tasks = [(*part(60, k), *part(30, k)) for k in range(2)]
    return Benchmark.from_tensors(
        "toy", tasks, model=lambda: nn.Linear(8, 6), offline_iterations=12
    )


def config(method: str, seed: int = 1) -> Config:
    return configure(benchmark(), method, seed=seed, batch_size=10, eval_size=30)


def curves(run: Run) -> dict[str, bytes]:
    return {name: column.tobytes() for name, column in sorted(run.columns.items())}


def undisturbed(wanted: Config) -> dict[str, bytes]:
    return curves(execute(wanted))


def train(wanted: Config, store: Store) -> Finished:
    """Train with a checkpoint after every iteration, so that there is much to disturb."""
    return run_when_free(wanted, store, None, checkpoint_every=0)
