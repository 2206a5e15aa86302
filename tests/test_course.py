"""Tasks that return, epochs, and streams in a given order: what is trained, and what is stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import run_and_resume, trained, training_of

import twofold
from twofold import Benchmark
from twofold.errors import UserError
from twofold.memories.reading import read

MEMORIES = [
    "per-class-task(4)",
    "per-class(4)",
    "reservoir(25)",
    "reservoir(25,current=false)",
    "class-balanced(25)",
    "ring(25)",
    "herding(25)",
]


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_return_leaves_the_memory_as_it_was(memory):
    """In offline mode every example was seen at the first visit."""
    benchmark = class_benchmark(examples=64)
    options = {"memory": memory, "iterations": 8, "benchmark": benchmark}
    once, _ = trained("er", order="1,2", **options)
    training, _ = trained("er", order="1,2,1", **options)
    stored = np.concatenate(training.memory.parts)
    assert len(set(stored)) == len(stored)
    if read(memory).ahead or read(memory).current:  # herding looks at the network
        assert sorted(stored) == sorted(np.concatenate(once.memory.parts))
    assert not any(map(len, training.memory.parts[2:]))


@pytest.mark.parametrize("memory", ["reservoir(50)", "herding(50)", "reservoir(50,current=false)"])
def test_a_return_adds_examples_that_were_not_seen_before(memory):
    """Online and shortened, the first visit showed 24 of 60 examples."""
    options = {"mode": "online", "iterations": 3, "memory": memory}
    training, _ = trained("er", order="1,2,1", **options)
    first, second, third = training.memory.parts
    assert (len(first), len(second)) == (min(24, len(first)), min(24, len(second)))
    assert len(third) > 0
    assert not set(first) & set(third)
    assert np.isin(third, training.tasks[0].train).all()


@pytest.mark.parametrize(
    "method", ["er", "er+gem", "joint", "joint(keep=20)", "der(augment=none)", "er+distil+ewc"]
)
def test_methods_train_on_returning_tasks(method):
    training, result = trained(method, order="1,2,1,3")
    assert result.finite
    assert result.curves["task"].max() == 4
    stored = np.concatenate(training.memory.parts)
    assert len(set(stored)) == len(stored)


def test_a_return_shows_the_same_task_in_a_new_order():
    training = training_of("finetune", order="1,1")
    first, second = (training.sampler._batch(k, 1, training.course.rows(k)) for k in (1, 2))
    assert training.course.rows(1) is training.course.rows(2)
    assert not np.array_equal(first, second)


def test_a_return_is_evaluated_on_the_same_images():
    _, result = trained("er", order="1,2,1", eval_size=9)
    back = result.curves["task"] == 3
    assert np.array_equal(result.curves["accuracy_1"][back], result.curves["accuracy_3"][back])
    assert np.isnan(result.curves["accuracy_3"][~back]).all()
    assert result.task_ends[2][0] == result.task_ends[2][2]


def test_a_run_counts_a_return_once():
    few = {"batch_size": 8, "iterations": 4, "lr": 0.02}
    run = twofold.run(class_benchmark(), "er+ema", order="1,2,1", progress=False, **few)
    ends = run.summary["accuracy_after_task"]
    assert run.avg == np.mean(ends[-1][:2]) == run.measures["avg"]
    assert run.min == np.mean(run.summary["minimum_of_task"]) == run.measures["min"]
    assert run.summary["raw_avg"] == np.mean(run.summary["raw_accuracy_after_task"][-1][:2])
    assert [(gap.switch, gap.task) for gap in run.gaps] == [(4, 1), (8, 2)]


def test_exact_minima_of_returning_tasks():
    _, every = trained("er", order="1,2,1,3", eval_size=9)
    _, exact = trained("er", order="1,2,1,3", eval_size=9, eval_schedule="exact-min:3")
    for k in (1, 2, 3):
        after = every.curves["task"] > k
        lowest = np.nanmin(exact.curves[f"lowest_{k}"][after])
        assert lowest == np.nanmin(every.curves[f"accuracy_{k}"][after])


def test_bic_can_not_tell_old_from_new_classes_if_a_task_returns():
    with pytest.raises(UserError, match="no task can return"):
        training_of("bic(augment=none)", order="1,2,1")


# Epochs


@pytest.mark.parametrize("method", ["er", "bic(augment=none)", "er+cosine"])
def test_epochs_are_iterations_of_whole_passes(method):
    """60 examples in batches of 8: 7 batches per pass; bic holds three examples out."""
    (by_epochs, one), (by_iterations, other) = (
        trained(method, iterations=None, epochs=1, memory_per_class=10),
        trained(method, iterations=7, memory_per_class=10),
    )
    assert len(one.curves["task"]) == 21
    assert torch.equal(by_epochs.net.values, by_iterations.net.values)
    assert one.task_ends == other.task_ends


def test_epochs_can_exceed_the_benchmarks_own_length():
    training, result = trained("er", iterations=None, epochs=3, tasks=2)
    assert training.benchmark.offline_iterations == 12
    assert np.bincount(result.curves["task"].astype(int)).tolist() == [0, 21, 21]


def test_progress_counts_the_iterations_of_epochs():
    seen = []
    training = training_of("er", iterations=None, epochs=2)
    training.on_progress = seen.append
    training.run()
    assert {each.iterations for each in seen} == {42}
    assert seen[-1].iteration == 42


# Streams in a given order


def stream_benchmark(ordered: bool) -> Benchmark:
    made = domain_benchmark()
    parts = []
    for task in made.tasks:
        train, test = made.train.batch(task.train), made.test.batch(task.test)
        parts.append((train.x, train.y, test.x, test.y))
    return Benchmark.from_tensors("stream", parts, ordered=ordered)


def rows_of(training) -> list[int]:
    rows, passes = [], training.objective.passes
    training.objective.passes = lambda draw: (rows.extend(draw.new.rows.tolist()), passes(draw))[1]
    training.run()
    return rows


def test_an_ordered_benchmark_is_seen_in_its_order():
    online = {"mode": "online", "iterations": None}
    rows = rows_of(training_of("finetune", benchmark=stream_benchmark(True), **online))
    assert rows == [60 * task + k for task in range(3) for k in range(56)]
    shuffled = rows_of(training_of("finetune", benchmark=stream_benchmark(False), **online))
    assert shuffled != rows


def test_every_pass_and_every_part_keeps_the_order():
    options = {"iterations": None, "epochs": 2, "tasks": 1}
    rows = rows_of(training_of("finetune", benchmark=stream_benchmark(True), **options))
    assert rows == 2 * list(range(56))
    parts = training_of("finetune", benchmark=stream_benchmark(True), parts=3, **options)
    assert (np.diff(rows_of(parts)[:56]) > 0).all()


def test_an_order_of_rows_is_part_of_the_identity():
    from twofold.experiments.digests import benchmark_digest

    assert benchmark_digest(stream_benchmark(True)) != benchmark_digest(stream_benchmark(False))


# All of them continue from a checkpoint


@pytest.mark.parametrize(
    ("method", "options", "place"),
    [
        ("er+gem", {"order": "1,2,1", "memory": "reservoir(20)"}, (3, 4)),
        ("er", {"order": "2,1,2", "memory": "herding(20)"}, (3, 1)),
        ("der(augment=none)", {"order": "1,2,1"}, (3, 2)),
        ("er(classes=seen)", {"blur": 0.6, "memory": "ring(20)"}, (1, 5)),
        ("er(classes=seen)", {"blur": 0.6, "memory": "ring(20)"}, (2, 1)),
        ("bic(augment=none)", {"blur": 0.6, "iterations": None, "epochs": 1}, (2, 1)),
        ("er", {"parts": 3, "memory": "class-balanced(20)"}, (2, 6)),
        ("er-ace+agem", {"task_free": True, "blur": 0.6, "memory": "reservoir(20)"}, (1, 1)),
        ("er-ace+agem", {"task_free": True, "blur": 0.6, "memory": "reservoir(20)"}, (2, 6)),
        ("er+hold+cosine", {"task_free": True, "memory": "reservoir(20)"}, (2, 1)),
        (
            "derpp(augment=none)",
            {"task_free": True, "memory": "ring(20)", "order": "1,2,1"},
            (3, 4),
        ),
    ],
)
def test_a_resumed_run_is_bitwise_the_same(method, options, place, tmp_path):
    pair = (training_of(method, benchmark=class_benchmark(), **options) for _ in range(2))
    untouched, resumed = pair
    first, second = run_and_resume(untouched, resumed, tmp_path / "checkpoint", place)
    assert torch.equal(untouched.net.values, resumed.net.values)
    assert first.task_ends == second.task_ends
    for name, column in first.curves.items():
        assert np.array_equal(column, second.curves[name], equal_nan=True), name
