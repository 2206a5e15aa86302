"""Runs with given results, for tests of what is made of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.compare.groups import Group, groups
from twofold.experiments.config import configure, usual_seeds
from twofold.experiments.runs import Run


def made(
    method: str = "er",
    low: float | None = 80.0,
    avg: float = 90.0,
    *,
    benchmark: str = "rotated-mnist",
    seed: int = 142,
    diverged: bool = False,
    seconds: float = 10.0,
    processor: str = "a processor",
    **options: Any,
) -> Run:
    """A run with this MIN and AVG; the other options are those of `configure`."""
    config = configure(benchmark, method, seed=seed, **options)
    summary = {
        "identity": config.identity(),
        "benchmark": config.benchmark,
        "mode": config.mode,
        "method": config.method,
        "seed": seed,
        "lr": config.lr,
        "batch_size": config.batch_size,
        "profile": config.profile,
        "min": low,
        "avg": avg,
        "diverged": diverged,
        "projected": 0.0,
        "seconds": {"training": seconds, "evaluation": 1.0},
        "command": config.command(),
        "made_with": {"processor": processor},
    }
    return Run(config, summary, {"task": np.ones(1)})


def seeded(
    method: str, lows: Sequence[float], avgs: Sequence[float] | None = None, **options: Any
) -> list[Run]:
    """A run for each value, with the paper's seeds in turn; AVG is ten above MIN if not given."""
    finals = avgs if avgs is not None else [low + 10 for low in lows]
    seeds = usual_seeds(len(lows))
    return [
        made(method, low, avg, seed=seed, **options)
        for low, avg, seed in zip(lows, finals, seeds, strict=True)
    ]


def gathered(*runs: Sequence[Run]) -> list[Group]:
    return groups(run for own in runs for run in own)
