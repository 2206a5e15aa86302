"""When a model is evaluated."""

import dataclasses

import numpy as np
import pytest
from helpers.benchmarks import domain_benchmark
from hypothesis import given
from hypothesis import strategies as st

from twofold import UserError, configure, run
from twofold.evaluation.schedule import Schedule


def evaluated(text: str, iterations: int) -> list[int]:
    schedule = Schedule.parse(text)
    return [n for n in range(1, iterations + 1) if n == iterations or schedule.due(n)]


def test_worked_examples():
    assert evaluated("every", 5) == [1, 2, 3, 4, 5]
    assert evaluated("every:2", 5) == [2, 4, 5]
    assert evaluated("dense:3:4", 14) == [1, 2, 3, 4, 8, 12, 14]
    assert evaluated("dense:0:4", 9) == [4, 8, 9]
    assert Schedule.parse("dense") == Schedule.parse("dense:100:10")


@given(st.integers(0, 50), st.integers(1, 30), st.integers(1, 200))
def test_count_is_the_number_of_evaluations(dense, sparse, iterations):
    text = f"dense:{dense}:{sparse}"
    assert Schedule.parse(text).count(iterations) == len(evaluated(text, iterations))


@pytest.mark.parametrize(
    "text",
    [
        "sometimes",
        "every:",
        "every:0",
        "every:x",
        "dense:",
        "dense:5",
        "dense:5:0",
        "dense:-1:5",
        "dense:1:2:3",
        "",
        "Every",
    ],
)
def test_an_unreadable_schedule_is_refused(text):
    with pytest.raises(
        UserError, match="eval schedule must be every, every:10, dense:100:10 or exact-min, not"
    ):
        configure("rotated-mnist", "er", eval_schedule=text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("every:1", "every"), ("every:10", "every:10"), ("dense:0:7", "every:7"), ("dense", None)],
)
def test_each_schedule_has_one_text(text, canonical):
    schedule = Schedule.parse(text)
    assert schedule.text == (canonical or "dense:100:10")
    assert Schedule.parse(schedule.text) == schedule
    assert configure("rotated-mnist", "er", eval_schedule=text).eval_schedule == schedule.text


@given(st.integers(0, 30), st.integers(1, 30))
def test_the_text_means_the_same(dense, sparse):
    schedule = Schedule(dense, sparse)
    assert evaluated(schedule.text, 90) == evaluated(f"dense:{dense}:{sparse}", 90)


def test_a_run_follows_it_in_every_task():
    trained_run = run(
        domain_benchmark(), "er", batch_size=16, iterations=12, eval_schedule="dense:3:5"
    )
    task = trained_run.columns["task"]
    for t in np.unique(task):
        seen = ~np.isnan(trained_run.accuracy[task == t, 0])
        assert list(np.flatnonzero(seen) + 1) == [1, 2, 3, 5, 10, 12]
    assert trained_run.config.eval_schedule == "dense:3:5"


def test_fewer_evaluations_change_no_accuracy():
    every, dense = (
        run(domain_benchmark(), "er", batch_size=16, iterations=12, eval_schedule=schedule)
        for schedule in ("every", "dense:3:5")
    )
    seen = ~np.isnan(dense.accuracy)
    assert np.array_equal(dense.accuracy[seen], every.accuracy[seen])
    assert dense.min >= every.min
    assert dense.avg == every.avg


def test_schedule_and_precision_are_part_of_the_identity():
    config = configure("rotated-mnist", "er")
    others = [{"eval_schedule": "dense:100:10"}, {"eval_precision": "bf16"}]
    changed = [dataclasses.replace(config, **other).identity() for other in others]
    assert len({config.identity(), *changed}) == 3


def test_the_command_states_it():
    config = configure("rotated-mnist", "er", eval_schedule="dense", eval_precision="bf16")
    assert "--eval-schedule dense:100:10 --eval-precision bf16" in config.command()
