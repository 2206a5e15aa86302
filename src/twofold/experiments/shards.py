"""Shards: parts of a list of runs, for machines that share nothing.

All machines give the same command, each with a different `--shard`. The parts depend only on the
runs and not on what a store holds, so together they are the whole list, and no two overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.digests import unknown_reasons
from twofold.experiments.estimate import relative_costs


def part_of(
    configs: Sequence[Config], shard: str, data: Path | None = None, within: str | None = None
) -> list[Config]:
    """Return the runs of a shard such as `3/10`, in the order of the list.

    within: the time of a plan, which cannot be divided.
    """
    if within is not None:
        raise UserError(
            "shard and within exclude each other: a plan depends on the speed of its machine"
        )
    for config in configs:
        for why in unknown_reasons(config):
            raise UserError(f"a shard needs runs that are found again, and {config.method}: {why}")
    number, count = map(int, shard.split("/"))
    return divided(configs, count, data)[number - 1]


def divided(configs: Sequence[Config], count: int, data: Path | None = None) -> list[list[Config]]:
    """Divide runs into shards of as many runs, give or take one, and about as much work.

    Runs are sorted by benchmark and cost, and dealt out forwards and backwards in turn.
    """
    identities = [config.identity() for config in configs]
    costs = relative_costs(configs, data)
    keys = [(config.benchmark, -cost) for config, cost in zip(configs, costs, strict=True)]
    places = sorted(range(len(configs)), key=lambda place: (keys[place], identities[place]))
    parts: list[list[int]] = [[] for _ in range(count)]
    for turn, place in enumerate(places):
        parts[_dealt(turn, count)].append(place)
    return [[configs[place] for place in sorted(part)] for part in parts]


def _dealt(place: int, count: int) -> int:
    """Return the shard, from 0, of the run at a place of the sorted list."""
    turn, hand = divmod(place, count)
    return hand if turn % 2 == 0 else count - 1 - hand
