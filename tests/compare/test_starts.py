"""Runs that continue from trained weights: the seeds of a method form a group."""

from __future__ import annotations

import dataclasses

from helpers.runs import curve_run, gap_accuracies

from twofold import Run
from twofold.compare.groups import groups
from twofold.compare.starts import one_start_per_seed
from twofold.experiments.start import PER_SEED
from twofold.report.tables import store_table


def started(method: str, seed: int, start: str, mode: str = "offline") -> Run:
    run = curve_run(method, gap_accuracies(60, 2, 0), seed, mode=mode)
    config = dataclasses.replace(run.config, start_from=f"first/{start}", start_digest=start)
    return dataclasses.replace(run, config=config if start else run.config)


def sizes(runs: list[Run]) -> list[int]:
    return [len(group.runs) for group in groups(one_start_per_seed(runs))]


def test_seeds_with_weights_of_their_own_are_one_group_per_method() -> None:
    runs = [started(method, seed, f"w{seed}") for method in ("er", "er+gem") for seed in (1, 2, 3)]
    assert sizes(runs) == [3, 3]
    assert {run.config.start_digest for run in one_start_per_seed(runs)} == {PER_SEED}
    assert {run.config.start_digest for run in runs} == {"w1", "w2", "w3"}  # as they were


def test_a_table_states_the_start() -> None:
    runs = one_start_per_seed([started("er", seed, f"w{seed}") for seed in (1, 2)])
    (block,) = store_table(groups(runs)).blocks
    assert "start per seed" in block.about
    (block,) = store_table(groups([started("er", 1, "a")])).blocks
    assert "start a" in block.about


def test_two_starts_of_a_seed_stay_apart() -> None:
    runs = [started("er", seed, start) for seed in (1, 2) for start in ("a", "b")]
    assert sizes(runs) == [2, 2]


def test_random_weights_are_no_start() -> None:
    runs = [started("er", 1, "a"), started("er", 2, "")]
    assert sizes(runs) == [1, 1]


def test_other_modes_do_not_matter() -> None:
    offline = [started("er", seed, f"w{seed}") for seed in (1, 2)]
    online = [started("er", seed, "", mode="online") for seed in (1, 2)]
    assert sizes([*offline, *online]) == [2, 2]
