"""What an iteration trains on: what each method draws, alike for all methods with one seed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark

from twofold.benchmarks import Batch
from twofold.method import Method
from twofold.objectives import Draw
from twofold.settings import Settings
from twofold.training import Training

METHODS = ["finetune", "er", "er+agem", "er+gem", "gem", "agem", "joint", "der", "der+agem", "bic"]


B, ITERATIONS, TASKS = 8, 10, 3


def rows(batch: Batch | None) -> list[int]:
    return [] if batch is None else batch.rows.tolist()


@dataclass
class Watched:
    """A run, and what it drew."""

    training: Training
    start: torch.Tensor
    draws: list[Draw] = field(default_factory=list)
    tests: list[list[int]] = field(default_factory=list)

    def new(self) -> list[list[int]]:
        return [rows(draw.new) for draw in self.draws]

    def old(self) -> list[list[int]]:
        return [rows(draw.old) for draw in self.draws]


def watched(method: str, seed: int = 0, benchmark=None, **options) -> Watched:
    objective, routines = Method.parse(method).make()
    benchmark = benchmark or class_benchmark(TASKS)
    tests: list[list[int]] = []
    test_batch = benchmark.test.batch
    benchmark.test.batch = lambda rows: (tests.append(list(map(int, rows))), test_batch(rows))[1]
    options = {"memory_per_class": 10, "eval_schedule": "every:5", "eval_size": 9} | options
    options = {"iterations": ITERATIONS, "batch_size": B, "lr": 0.01} | options
    training = Training(benchmark, objective, routines, Settings(seed=seed, **options))
    run = Watched(training, training.net.values.clone())
    passes = objective.passes

    def noted(draw: Draw):
        run.draws.append(draw)
        return passes(draw)

    objective.passes = noted
    training.run()
    of_nine = [tuple(rows) for rows in tests if len(rows) == 9]  # as often as they are evaluated
    run.tests = [list(rows) for rows in dict.fromkeys(of_nine)]
    assert len(run.draws) == TASKS * (options["iterations"] or len(run.draws) // TASKS)
    return run


@pytest.fixture(scope="module")
def runs() -> dict[str, Watched]:
    return {method: watched(method) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_start_from_the_same_weights_and_are_evaluated_on_the_same_images(runs, method):
    assert torch.equal(runs[method].start, runs["er"].start)
    assert runs[method].tests == runs["er"].tests
    assert [len(drawn) for drawn in runs[method].tests] == TASKS * [9]


@pytest.mark.parametrize("method", [m for m in METHODS if m != "bic"])  # bic holds some rows out
def test_all_methods_see_the_same_batches(runs, method):
    assert runs[method].new() == runs["er"].new()


@pytest.mark.parametrize("method", ["er+agem", "agem", "der", "der+agem"])
def test_methods_that_replay_b_in_total_replay_the_same_examples(runs, method):
    assert runs[method].old() == runs["er"].old()


def test_methods_with_reference_batches_draw_the_same_ones(runs):
    drawn = {
        method: [[rows(batch) for batch in draw.references] for draw in runs[method].draws]
        for method in ("er+gem", "gem")
    }
    assert drawn["er+gem"] == drawn["gem"]


@pytest.mark.parametrize("method", ["er", "joint", "er+gem"])
def test_another_seed_is_another_run(runs, method):
    one, other = runs[method], watched(method, seed=1)
    assert not torch.equal(one.start, other.start)
    assert one.tests != other.tests
    assert all(a != b for a, b in zip(one.new(), other.new(), strict=True))
    later = slice(ITERATIONS, None)
    assert all(a != b for a, b in zip(one.old()[later], other.old()[later], strict=True))
    if method != "joint":  # which stores everything
        assert set(one.training.memory.parts[0]) != set(other.training.memory.parts[0])


def test_chances_do_not_depend_on_the_learning_rate_or_on_evaluation(runs):
    other = watched("er", lr=0.05, eval_schedule="every:1")
    assert other.new() == runs["er"].new()
    assert other.old() == runs["er"].old()


def test_one_iteration_is_drawn_unlike_the_next(runs):
    run = runs["er"]
    replayed = run.old()[ITERATIONS:]
    assert len({tuple(drawn) for drawn in replayed}) == len(replayed)
    epoch = len(run.training.tasks[0].train) // B
    first, second = run.new()[:epoch], run.new()[epoch:ITERATIONS]
    assert first[: len(second)] != second  # the second epoch has an order of its own


def test_an_epoch_shows_every_example_at_most_once(runs):
    size = 60
    epoch = size // B  # the last partial batch is dropped
    for task in range(TASKS):
        batches = runs["er"].new()[task * ITERATIONS :][:ITERATIONS]
        seen = [row for batch in batches[:epoch] for row in batch]
        assert len(set(seen)) == len(seen) == epoch * B
        assert set(seen) <= set(runs["er"].training.tasks[task].train)
        assert all(len(batch) == B for batch in batches)


def test_online_every_example_is_new_but_for_replay():
    run = watched("er", mode="online", iterations=None, batch_size=10)
    seen = [row for batch in run.new() for row in batch]
    assert sorted(seen) == list(range(3 * 60))


def of_task(run: Watched, task: int) -> list[Draw]:
    return run.draws[(task - 1) * ITERATIONS : task * ITERATIONS]


@pytest.mark.parametrize("method", METHODS)
def test_the_first_task_replays_nothing(runs, method):
    assert all(draw.old is None and not draw.references for draw in of_task(runs[method], 1))


@pytest.mark.parametrize("method", ["er", "er+agem", "er+gem", "der", "bic"])
def test_replay_is_b_examples_of_all_past_tasks(runs, method):
    run = runs[method]
    for task in (2, 3):
        stored = np.concatenate(run.training.memory.parts[: task - 1])
        for draw in of_task(run, task):
            old = rows(draw.old)
            assert len(set(old)) == len(old) == B
            assert set(old) <= set(stored)
    parts = [set(part) for part in run.training.memory.parts[:2]]
    last = {row for draw in of_task(run, 3) for row in rows(draw.old)}
    assert last & parts[0]
    assert last & parts[1]


@pytest.mark.parametrize("method", ["er+gem", "gem"])
def test_gem_draws_one_reference_batch_a_past_task(runs, method):
    run = runs[method]
    for task in (2, 3):
        for draw in of_task(run, task):
            assert len(draw.references) == task - 1
            for batch, part in zip(draw.references, run.training.memory.parts, strict=False):
                assert len(set(rows(batch))) == B
                assert set(rows(batch)) <= set(part)


def test_gems_replay_is_drawn_from_its_reference_batches(runs):
    for task in (2, 3):
        for draw in of_task(runs["er+gem"], task):
            pooled = {row for batch in draw.references for row in rows(batch)}
            assert len(rows(draw.old)) == B
            assert set(rows(draw.old)) <= pooled
    shares = [
        len(set(rows(draw.old)) & set(rows(draw.references[0]))) / B
        for draw in of_task(runs["er+gem"], 3)
    ]
    assert 0.25 < np.mean(shares) < 0.75  # of both past tasks
    assert runs["gem"].old() == len(runs["gem"].draws) * [[]]


@pytest.mark.parametrize("method", ["joint", "joint+agem", "joint+gem"])
def test_joint_replays_b_examples_of_each_past_task(runs, method):
    run = watched(method)
    assert run.old() == runs["joint"].old()
    for task in (2, 3):
        for draw in of_task(run, task):
            for past in range(task - 1):
                of_past = [r for r in rows(draw.old) if r in run.training.tasks[past].train]
                assert len(set(of_past)) == len(of_past) == B
            assert len(rows(draw.old)) == B * (task - 1)
            if "gem" in method and "agem" not in method:  # its references are that very data
                assert [r for batch in draw.references for r in rows(batch)] == rows(draw.old)


def test_a_memory_smaller_than_a_batch_is_replayed_whole():
    run = watched("er", memory_per_class=1)
    for task in (2, 3):
        stored = np.concatenate(run.training.memory.parts[: task - 1])
        assert len(stored) == 3 * (task - 1)
        for draw in of_task(run, task):
            assert len(rows(draw.old)) == min(B, len(stored))


def test_a_shared_quota_gives_gem_references_only_where_something_is_stored():
    run = watched("er+gem", benchmark=domain_benchmark(), memory_grouping="class")
    for draw in of_task(run, 3):
        assert len(draw.references) == 2
        for batch, task in zip(draw.references, run.training.tasks, strict=False):
            assert 0 < len(rows(batch)) <= B
            assert set(rows(batch)) <= set(task.train)
