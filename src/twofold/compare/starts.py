"""Runs whose seeds start from trained weights of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from twofold.experiments.runs import Run
from twofold.experiments.start import PER_SEED


def one_start_per_seed(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with the same start, so that their seeds form a group.

    This holds for a benchmark and mode in which every seed has one start, for all methods. Then the
    weights are part of the seed, as a random initialisation is. Other runs stay as they are.
    """
    starts: dict[tuple[str, str], dict[int, set[str]]] = {}
    for run in runs:
        seeds = starts.setdefault((run.config.benchmark, run.config.mode), {})
        seeds.setdefault(run.config.seed, set()).add(run.config.start_digest)
    alike = {
        place
        for place, seeds in starts.items()
        if all(len(digests) == 1 and "" not in digests for digests in seeds.values())
    }
    return [
        _with_start(run, PER_SEED) if (run.config.benchmark, run.config.mode) in alike else run
        for run in runs
    ]


def _with_start(run: Run, start: str) -> Run:
    config = dataclasses.replace(run.config, start_from=start, start_digest=start)
    return dataclasses.replace(run, config=config)
