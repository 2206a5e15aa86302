"""Pairs of runs: which runs of a routine are compared with which runs of plain SGD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.benchmarks import domain_benchmark
from helpers.runs import grouped, scored_run, seeded

import twofold as package
from twofold.compare.groups import groups
from twofold.compare.verdicts import unpaired, verdicts

PLAIN = [80.0, 80.0, 80.0]


def test_each_routine_with_plain_sgd_by_seed() -> None:
    plain = seeded("er", [80, 70, 90, 60])
    routine = [*seeded("er+gem", [82, 73, 94])[1:], scored_run("er+gem", 50, 60, seed=999)]
    one, three = verdicts(grouped(plain, routine))
    assert (one.hypothesis, one.metric) == ("H1", "min")
    assert (three.hypothesis, three.metric) == ("H3", "avg")
    assert one.seeds == (152, 162)
    assert one.differences == (3, 4)
    assert one.effect == 3.5
    assert (one.objective, one.routine) == ("er", "gem")
    assert (one.benchmark, one.mode, one.profile) == ("rotated-mnist", "offline", "paper")
    assert (one.lr, one.batch_size) == (0.1, 128)
    assert one.commands == (
        "twofold run rotated-mnist er --mode offline --seeds 4 --profile paper",
        "twofold run rotated-mnist er+gem --mode offline --seed 152,162,999 --profile paper",
    )


def test_the_objective_must_be_the_same() -> None:
    runs = [seeded(m, PLAIN) for m in ("finetune", "er", "joint", "der", "der(beta=0.5)")]
    runs += [seeded(m, [81, 82, 84]) for m in ("gem", "er+gem", "joint+agem", "der(beta=0.5)+agem")]
    pairs = [(v.objective, v.routine) for v in verdicts(grouped(*runs)) if v.hypothesis == "H1"]
    assert pairs == [
        ("er", "gem"),  # primary ones come first
        ("joint", "agem"),
        ("finetune", "gem"),
        ("der(beta=0.5)", "agem"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"lr": 0.01},
        {"batch_size": 64},
        {"mode": "online"},
        {"benchmark": "domain-cifar100"},
        {"memory_per_class": 10},
        {"memory_grouping": "class"},
        {"momentum": 0.5},
        {"iterations": 20},
        {"eval_schedule": "every:10"},
        {"eval_size": 100},
        {"profile": "published"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_all_other_settings_must_be_the_same(other: dict[str, Any]) -> None:
    all_groups = grouped(seeded("er", PLAIN, **other), seeded("er+gem", [81, 82, 84]))
    assert verdicts(all_groups) == []
    (sentence,) = unpaired(all_groups)
    assert (
        "er+gem on rotated-mnist offline (LR 0.1, BS 128, profile paper) has no plain er"
        in sentence
    )
    command = "twofold run rotated-mnist er --mode offline --seeds 3 --profile paper"
    assert f"`{command}` trains it." in sentence


def test_the_precision_of_the_evaluation_may_differ() -> None:
    rounded = seeded("er+gem", [81, 82, 84], eval_precision="bf16")
    all_groups = grouped(seeded("er", PLAIN), rounded)
    assert unpaired(all_groups) == []
    assert len(verdicts(all_groups)) == 2


def test_the_published_er_and_er_gem_have_different_memories() -> None:
    """Their difference is not only due to GEM: no verdict, but a command for a fair comparison."""
    published = {"profile": "published"}
    all_groups = grouped(
        seeded("er", PLAIN, **published), seeded("er+gem", [81, 82, 84], **published)
    )
    assert verdicts(all_groups) == []
    (sentence,) = unpaired(all_groups)
    assert "--memory-grouping class-task --profile published" in sentence
    equal = seeded("er", PLAIN, memory_grouping="class-task", **published)
    more = [*all_groups, *groups(equal)]
    assert unpaired(more) == []
    assert {v.profile for v in verdicts(more)} == {"published"}


def test_the_published_joint_and_joint_gem_store_different_examples() -> None:
    """The command that trains the missing partner has keep=none."""
    gem = seeded("joint+gem", [81, 82, 84], profile="published")
    (sentence,) = unpaired(grouped(gem, seeded("joint", PLAIN, profile="published")))
    assert "run rotated-mnist 'joint(keep=none)'" in sentence
    asked = {"profile": "published", "memory_grouping": "class-task"}
    assert asked["memory_grouping"] in sentence
    assert unpaired(grouped(gem, seeded("joint(keep=none)", PLAIN, **asked))) == []


def test_no_seed_in_common_is_no_pair() -> None:
    all_groups = groups([scored_run("er", seed=1), scored_run("er+gem", seed=2)])
    assert verdicts(all_groups) == []
    assert len(unpaired(all_groups)) == 1


def test_a_plugin_changes_nothing_in_plain_sgd(half: Path) -> None:
    plugin = {"plugins": [str(half)]}
    all_groups = grouped(seeded("er", PLAIN), seeded("er+half", [81, 82, 84], **plugin))
    assert {v.routine for v in verdicts(all_groups)} == {"half"}


def test_the_setting_at_which_plain_sgd_ends_highest_counts() -> None:
    runs = [
        seeded("er", PLAIN, [90, 90, 90]),
        seeded("er+clip", [99, 99, 90]),
        seeded("er", PLAIN, [91, 91, 91], lr=0.01),
        seeded("er+clip", [81, 82, 84], lr=0.01),
        seeded("er", PLAIN, [95, 95, 95], lr=0.001),  # without a partner
    ]
    all_groups = grouped(*runs)
    assert [v.lr for v in verdicts(all_groups)] == [0.01, 0.01]
    every = verdicts(all_groups, all_settings=True)
    assert [(v.hypothesis, v.lr, v.family) for v in every] == [
        ("H1", 0.1, 2),
        ("H1", 0.01, 2),
        ("H3", 0.1, 2),
        ("H3", 0.01, 2),
    ]


def test_full_runs_go_before_shorter_ones() -> None:
    short = {"iterations": 20}
    runs = [seeded("er", PLAIN), seeded("er+gem", [81, 82, 84])]
    runs += [seeded("er", [70.0] * 5, **short), seeded("er+gem", [90.0] * 5, **short)]
    low, _ = verdicts(grouped(*runs))
    assert low.differences == (1, 2, 4)


@pytest.mark.parametrize(("thin_seeds", "expected"), [(5, (20,) * 5), (3, (1, 2, 4))])
def test_the_most_seeds_count_and_then_the_fullest_evaluation(thin_seeds: int, expected) -> None:
    thin = {"eval_schedule": "every:10"}
    runs = [seeded("er", [80.0] * 3), seeded("er+gem", [81, 82, 84])]
    runs += [seeded("er", [70.0] * thin_seeds, **thin)]
    runs += [seeded("er+gem", [90.0] * thin_seeds, **thin)]
    low, _ = verdicts(grouped(*runs))
    assert low.differences == expected


def test_real_runs_are_compared_by_seed() -> None:
    benchmark = domain_benchmark()
    runs = {
        (method, seed): package.run(benchmark, method, seed=seed, batch_size=8, iterations=6)
        for method in ("er", "er+agem", "er+gem")
        for seed in (1, 2, 3)
    }
    found = [v for v in verdicts(groups(runs.values())) if v.hypothesis == "H1"]
    assert {v.routine for v in found} == {"agem", "gem"}
    for verdict in found:
        by_hand = [runs[f"er+{verdict.routine}", s].min - runs["er", s].min for s in (1, 2, 3)]
        assert verdict.differences == pytest.approx(by_hand)
        assert verdict.effect == pytest.approx(sum(by_hand) / 3)
        assert verdict.commands == (None, None)
