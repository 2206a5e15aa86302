"""Runs whose seeds start from trained weights of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from twofold.experiments.runs import Run

OWN = "own"  # in place of the start of a run that shares it with its seed


def one_start_per_seed(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with the same start, so that their seeds form a group.

    This holds only if every seed has one start, for all methods of a benchmark and mode. Then the
    weights are part of the seed, as a random initialisation is. Otherwise runs stay as they are.
    """
    starts: dict[tuple[object, ...], set[str]] = {}
    for run in runs:
        config = run.config
        place = (config.benchmark, config.mode, config.seed)
        starts.setdefault(place, set()).add(config.start_digest)
    if any(len(digests) > 1 or "" in digests for digests in starts.values()):
        return list(runs)
    return [
        dataclasses.replace(
            run, config=dataclasses.replace(run.config, start_from=OWN, start_digest=OWN)
        )
        for run in runs
    ]
