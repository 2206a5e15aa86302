"""Sides of a comparison: the same in everything else, or one line that says what to add."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from helpers.runs import scored_run, seeded

from twofold import Run, UserError
from twofold.compare.sides import Side, sides

THREE = [80.0, 81.0, 82.0]


def runs(*of: tuple[str, dict[str, Any]]) -> list[Run]:
    return [run for method, options in of for run in seeded(method, THREE, **options)]


def settings(found: list[Side], name: str) -> list[Any]:
    return [side.group.config.value(name) for side in found]


def message(found: list[Run], *values: Any, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        sides(found, values, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_one_setting_that_all_have_is_taken() -> None:
    found = runs(("er", {}), ("er", {"lr": 0.01}), ("er+gem", {}), ("joint", {"mode": "online"}))
    assert settings(sides(found, ["er", "er+gem"]), "lr") == [0.1, 0.1]
    one_way, other_way = (sides(found, ["er", text]) for text in ("er+gem", "gem(gamma=0.5)+er"))
    assert one_way == other_way  # a method can be written in several ways


def test_several_settings_are_an_ambiguity() -> None:
    both = [{"lr": lr, "mode": mode} for lr in (0.1, 0.01) for mode in ("offline", "online")]
    found = runs(*((method, options) for method in ("er", "er+gem") for options in both))
    assert message(found, "er", "er+gem") == (
        "4 settings could be compared (mode offline, online; lr 0.1, 0.01): "
        "add --mode offline --lr 0.1, for instance"
    )
    memories = [{"memory": memory} for memory in ("ring(50)", "ring(70)")]
    found = runs(*((method, options) for method in ("er", "er+gem") for options in memories))
    assert message(found, "er", "er+gem").endswith("add --memory 'ring(50)', for instance")


def test_different_settings_need_consent() -> None:
    found = runs(("er", {}), ("der", {"lr": 0.03, "momentum": 0.5}))
    assert message(found, "er", "der") == (
        "er and der have no runs with equal settings (lr 0.1 and 0.03; momentum 0.9 and 0.5): "
        "--may-differ lr,momentum compares them nevertheless"
    )
    allowed = sides(found, ["er", "der"], may_differ=["lr", "momentum"])
    assert settings(allowed, "lr") == [0.1, 0.03]
    elsewhere = runs(("er", {}), ("er+gem", {"benchmark": "split-cifar100"}))
    assert message(elsewhere, "er", "er+gem").endswith("a comparison is on one benchmark")
    apart = runs(("er", {}), ("er", {"lr": 1.0}), ("er+gem", {}), ("joint", {"lr": 1.0}))
    assert message(apart, "er", "er+gem", "joint").startswith("er+gem and joint have no runs")


@pytest.mark.parametrize(
    ("by", "values", "options"),
    [
        ("optimizer", ["sgd", "adam"], [{}, {"optimizer": "adam", "lr": 0.1}]),
        ("batch-size", ["128", "64"], [{}, {"batch_size": 64}]),
        ("memory", ["per-class-task(100)", "ring(50)"], [{}, {"memory": "ring(50)"}]),
        ("memory_per_class", ["100", "50"], [{}, {"memory_per_class": 50}]),
        ("mode", ["offline", "online"], [{"lr": 0.1}, {"mode": "online", "lr": 0.1}]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_setting_can_be_compared(by: str, values: list[str], options: list[Any]) -> None:
    found = runs(*(("er", each) for each in options))
    both = sides(found, values, by=by, may_differ=["batch_size"] if by == "mode" else ())
    name = by.replace("-", "_")
    assert [str(value) for value in settings(both, name)] == values


def test_numbers_are_named_with_their_setting() -> None:
    found = runs(("er", {}), ("er", {"batch_size": 64}))
    assert [side.name for side in sides(found, [128, "64"], by="batch_size")] == [
        "batch 128",
        "batch 64",
    ]


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        (
            ["er", "er+gme"],
            {},
            "unknown method 'er+gme': did you mean 'er+gem'? (there are er, er+",
        ),
        (["er", "joint"], {}, "no runs of joint: train them with `twofold run rotated-mnist joint"),
        (["er"], {}, "name at least two to compare"),
        (["er+gem", "er+gem(0.5)"], {}, "er+gem is named twice"),
        (["sgd", "adam"], {"by": "optimizer"}, "unknown optimizer 'adam' (there are sgd)"),
        (["1", "2"], {"by": "optimiser"}, "unknown setting 'optimiser': did you mean 'optimizer'?"),
        (["1", "2"], {"by": "seed"}, "unknown setting 'seed'"),
        (["er", "er+gem"], {"may_differ": ["lrr"]}, "unknown setting 'lrr': did you mean 'lr'?"),
        (["a", "b"], {"by": "lr"}, "lr must be a finite number, not 'a'"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    values: list[str], options: dict[str, Any], said: str
) -> None:
    assert message(runs(("er", {}), ("er+gem", {})), *values, **options).startswith(said)


def test_missing_runs_are_trained_in_the_setting_of_the_others_with_their_plugins() -> None:
    """No plugin is loaded here."""
    options = {"iterations": 50, "memory": "ring(50)"}
    ers = [
        changed(run, benchmark="own", plugins=["my own.py"])
        for run in seeded("er", THREE, **options)
    ]
    assert message([*seeded("gem", THREE[:2]), *ers], "er", "joint") == (
        "no runs of joint: train them with `twofold run own joint --mode offline --seeds 3 "
        "--iterations 50 --memory 'ring(50)' --profile paper --plugin 'my own.py'` "
        "(there are er, gem)"
    )
    tensors = [changed(run, benchmark="own", own="1234") for run in seeded("er", THREE)]
    assert message(tensors, "er", "joint") == "no runs of joint (there are er)"


def test_two_seeds_in_common_are_needed() -> None:
    found = [*seeded("er", THREE), scored_run("er+gem", seed=152), scored_run("joint", seed=7)]
    assert message(found, "er", "er+gem") == (
        "er and er+gem have only one seed in common (er 142, 152, 162; er+gem 152), and two are "
        "needed: `twofold run rotated-mnist er+gem --mode offline --seed 142,162 --profile paper` "
        "trains more"
    )
    assert message(found, "er", "joint").startswith("er and joint have no seed in common (er 142")


def test_seeds_in_bf16_and_fp32_count_together() -> None:
    mixed = [*seeded("er+gem", THREE[:2]), scored_run("er+gem", seed=162, eval_precision="bf16")]
    (one, other) = sides([*seeded("er", THREE), *mixed], ["er", "er+gem"])
    assert one.common(other) == [142, 152, 162]
    mixed[2].summary["audit"] = {"images": 2000, "differences": 500}
    (one, other) = sides([*seeded("er", THREE), *mixed], ["er", "er+gem"])
    assert one.common(other) == [142, 152]  # not what audits found to be different


def test_exact_minima_count_as_evaluated_alike_unless_curves_are_needed() -> None:
    found = runs(("er", {}), ("er+gem", {"eval_schedule": "exact-min"}))
    assert len(sides(found, ["er", "er+gem"], curves=False)) == 2
    assert "(eval schedule every and exact-min:10)" in message(found, "er", "er+gem")


def changed(run: Run, **config: Any) -> Run:
    return dataclasses.replace(run, config=dataclasses.replace(run.config, **config))


def test_pairs_are_on_the_same_data() -> None:
    """The data of a benchmark of one's own may depend on the seed."""
    ers, gems = seeded("er", THREE), seeded("er+gem", THREE)
    drawn = [changed(run, own=f"data {k % 3}") for k, run in enumerate([*ers, *gems])]
    (one, other) = sides(drawn, ["er", "er+gem"])
    assert one.common(other) == [142, 152, 162]
    differ = [*(changed(run, own="a") for run in ers), *(changed(run, own="b") for run in gems)]
    assert message(differ, "er", "er+gem").startswith(
        "er and er+gem were trained on different data"
    )
    mixed = [changed(run, own=own) for own in "ab" for run in [*ers, *gems]]
    assert "the runs of er are on different data" in message(mixed, "er", "er+gem")


def test_versions_of_ones_own_code_are_not_mixed() -> None:
    found = runs(("er", {}), ("er+gem", {}))
    found[-1].summary["plugins"] = ["a newer text"]
    assert "the runs of er+gem come from 2 versions of its code" in message(found, "er", "er+gem")


def started(found: list[Run], prefix: str) -> list[Run]:
    """The runs, whose seeds start from weights of their own."""
    starts = [f"{prefix}{run.config.seed}" for run in found]
    return [changed(r, start_from=s, start_digest=s) for r, s in zip(found, starts, strict=True)]


def test_seeds_may_start_from_weights_of_their_own() -> None:
    found = started(runs(("er", {}), ("er+gem", {})), "w")
    random = seeded("joint", THREE)  # from random weights, but it is not compared
    (one, other) = sides([*found, *random], ["er", "er+gem"])
    assert one.common(other) == [142, 152, 162]
    assert one.group.config.start_digest == "per seed"
    assert one.group.command() is None  # none trains all seeds
    lacking = message(found[:4], "er", "er+gem")
    assert lacking.endswith("(er 142, 152, 162; er+gem 142), and two are needed")


def test_one_of_two_starts_is_chosen_by_an_option_that_exists() -> None:
    both = runs(("er", {}), ("er+gem", {}))
    found = [changed(r, start_from=f"in/{s}", start_digest=s) for s in "ab" for r in both]
    assert message(found, "er", "er+gem") == (
        "2 settings could be compared (start digest a, b): add --start-from in/a, for instance"
    )
    untrained = message([*both, *found[:6]], "er", "er+gem")
    assert untrained.endswith("add --start-from '', for instance")


def test_starts_can_be_compared() -> None:
    both = runs(("er", {}), ("er+gem", {}))
    found = [changed(run, start_from="x", start_digest="a") for run in both[:3]] + both[3:]
    message_of_both = message(found, "er", "er+gem")
    assert message_of_both.endswith("--may-differ start_digest compares them nevertheless")
    ers = [*found[:3], *(changed(run, start_from="y", start_digest="b") for run in both[:3])]
    assert settings(sides(ers, ["a", "b"], by="start_digest"), "start_digest") == ["a", "b"]
