"""When a model is judged."""

import dataclasses

import numpy as np
import pytest
from helpers.benchmarks import domain_benchmark
from hypothesis import given
from hypothesis import strategies as st

from twofold import UserError, configure, run
from twofold.evaluation.schedule import Schedule


def judged(text: str, every: int, iterations: int) -> list[int]:
    schedule = Schedule.parse(text, every)
    return [n for n in range(1, iterations + 1) if n == iterations or schedule.due(n)]


def test_worked_examples():
    assert judged("every", 1, 5) == [1, 2, 3, 4, 5]
    assert judged("every", 2, 5) == [2, 4, 5]
    assert judged("dense:3:4", 1, 14) == [1, 2, 3, 4, 8, 12, 14]
    assert judged("dense:0:4", 1, 9) == [4, 8, 9]
    assert Schedule.parse("dense") == Schedule.parse("dense:100:10")


@given(st.integers(0, 50), st.integers(1, 30), st.integers(1, 200))
def test_count_is_how_many_are_judged(dense, sparse, iterations):
    text = f"dense:{dense}:{sparse}"
    assert Schedule.parse(text).count(iterations) == len(judged(text, 1, iterations))


@pytest.mark.parametrize(
    "text",
    ["sometimes", "dense:", "dense:5", "dense:5:0", "dense:-1:5", "dense:1:2:3", "", "Every"],
)
def test_what_can_not_be_read_is_refused(text):
    with pytest.raises(UserError, match="eval schedule must be every, or such as dense:100:10"):
        configure("rotated-mnist", "er", eval_schedule=text)


def test_two_answers_to_one_question_are_refused():
    with pytest.raises(UserError, match="leave eval every 10 out"):
        configure("rotated-mnist", "er", eval_schedule="dense", eval_schedule="every:10")


def test_a_run_is_judged_by_it_in_every_task():
    made = run(domain_benchmark(), "er", batch_size=16, iterations=12, eval_schedule="dense:3:5")
    task = made.columns["task"]
    for t in np.unique(task):
        seen = ~np.isnan(made.accuracy[task == t, 0])
        assert list(np.flatnonzero(seen) + 1) == [1, 2, 3, 5, 10, 12]
    assert made.config.eval_schedule == "dense:3:5"


def test_what_is_judged_is_what_would_have_been_judged():
    every, dense = (
        run(domain_benchmark(), "er", batch_size=16, iterations=12, eval_schedule=schedule)
        for schedule in ("every", "dense:3:5")
    )
    seen = ~np.isnan(dense.accuracy)
    assert np.array_equal(dense.accuracy[seen], every.accuracy[seen])
    assert dense.min >= every.min
    assert dense.avg == every.avg


def test_runs_made_before_there_was_a_choice_keep_their_identity():
    """The digest of this run as it was before these settings were known."""
    config = configure("rotated-mnist", "er")
    assert config.identity() == "46555b832d"
    assert dataclasses.replace(config, eval_schedule="dense:100:10").identity() != "46555b832d"
    assert dataclasses.replace(config, eval_precision="bf16").identity() != "46555b832d"


def test_its_command_says_it():
    config = configure("rotated-mnist", "er", eval_schedule="dense", eval_precision="bf16")
    assert "--eval-schedule dense:100:10 --eval-precision bf16" in config.command()
