"""The memory: quotas, balance, and draws that are uniform and without repeats."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.benchmarks import Task
from twofold.memories import Memory, PerClass, PerClassTask
from twofold.streams import sample, stream

NONE = np.empty(0, np.int64)


def tasks_and_labels(tasks: int, classes: int, each: int, shared: bool):
    """Tasks of `each` examples a class; the classes are shared by all tasks or not."""
    labels = np.concatenate(
        [np.tile(np.arange(classes), each) + (0 if shared else classes * k) for k in range(tasks)]
    )
    size = classes * each
    sequence = [
        Task(np.arange(size * k, size * (k + 1)), NONE, tuple(np.unique(labels[size * k :][:size])))
        for k in range(tasks)
    ]
    return sequence, labels


def started(memory: Memory, labels: np.ndarray) -> Memory:
    memory.start(labels)
    return memory


def filled(
    tasks: list[Task], labels: np.ndarray, seed: int = 0, cls=PerClassTask, **options
) -> Memory:
    memory = started(cls(**options), labels)
    for k, task in enumerate(tasks):
        memory.add(k + 1, np.concatenate(memory.choose(task, stream(seed, "memory", k + 1))))
    return memory


sizes = given(
    seed=st.integers(0, 1000),
    tasks=st.integers(1, 4),
    classes=st.integers(1, 4),
    each=st.integers(1, 12),
    per_class=st.integers(1, 8),
    shared=st.booleans(),
)


@sizes
@settings(max_examples=100, deadline=None, derandomize=True)
def test_each_class_of_each_task_has_its_quota(seed, tasks, classes, each, per_class, shared):
    sequence, labels = tasks_and_labels(tasks, classes, each, shared)
    memory = filled(sequence, labels, seed, per_class=per_class)
    assert len(memory.parts) == tasks
    for part, task in zip(memory.parts, sequence, strict=True):
        assert len(set(part)) == len(part)
        assert set(part) <= set(task.train)
        counts = [int((labels[part] == c).sum()) for c in task.classes]
        assert counts == classes * [min(per_class, each)]  # all of them where there are fewer
    assert len(memory) == tasks * classes * min(per_class, each)


@sizes
@settings(max_examples=100, deadline=None, derandomize=True)
def test_grouped_by_class_the_quota_is_over_all_tasks(
    seed, tasks, classes, each, per_class, shared
):
    sequence, labels = tasks_and_labels(tasks, classes, each, shared)
    memory = filled(sequence, labels, seed, per_class=per_class, cls=PerClass)
    stored = np.concatenate(memory.parts)
    assert len(set(stored)) == len(stored) == len(memory)
    available = each * (tasks if shared else 1)
    for c in np.unique(labels):
        assert (labels[stored] == c).sum() == min(per_class, available)
    for part, task in zip(memory.parts, sequence, strict=True):
        assert set(part) <= set(task.train)


def test_groupings_agree_where_tasks_share_no_class():
    sequence, labels = tasks_and_labels(3, 4, 10, shared=False)
    one = filled(sequence, labels, per_class=5)
    other = filled(sequence, labels, per_class=5, cls=PerClass)
    for a, b in zip(one.parts, other.parts, strict=True):
        assert set(a) == set(b)


def test_grouped_by_class_old_tasks_give_way_evenly():
    """A reservoir: after k equal tasks, a k-th of the memory is of each."""
    sequence, labels = tasks_and_labels(3, 10, 500, shared=True)
    memory = started(PerClass(100), labels)
    for k, task in enumerate(sequence):
        memory.add(k + 1, np.concatenate(memory.choose(task, stream(0, "memory", k + 1))))
        assert len(memory) == 1000
        assert len(memory.parts[0]) == pytest.approx(1000 / (k + 1), abs=0 if k == 0 else 60)
    assert [len(part) for part in memory.parts] == pytest.approx([333, 333, 333], abs=60)


def test_what_a_reservoir_has_dropped_does_not_come_back():
    sequence, labels = tasks_and_labels(3, 5, 50, shared=True)
    memory = started(PerClass(20), labels)
    before: set[int] = set()
    for k, task in enumerate(sequence):
        memory.add(k + 1, np.concatenate(memory.choose(task, stream(0, "memory", k + 1))))
        assert {int(row) for part in memory.parts[:k] for row in part} <= before or k == 0
        before = {int(row) for part in memory.parts for row in part}


def test_every_example_has_the_same_chance_of_being_stored():
    sequence, labels = tasks_and_labels(1, 2, 20, shared=True)
    counts = np.zeros(40)
    for seed in range(2000):
        counts[filled(sequence, labels, seed, per_class=5).parts[0]] += 1
    assert counts.sum() == 2000 * 10
    # Draws without replacement vary less than a chi-square has it, hence an upper tail only.
    assert scipy.stats.chisquare(counts).pvalue > 0.01


def test_a_smaller_quota_keeps_a_part_of_a_larger_ones():
    """The same examples are stored, whatever a method does with its share."""
    sequence, labels = tasks_and_labels(2, 3, 20, shared=True)
    small = filled(sequence, labels, per_class=4)
    large = filled(sequence, labels, per_class=9)
    for a, b in zip(small.parts, large.parts, strict=True):
        assert set(a) < set(b)


def test_chosen_examples_come_class_by_class():
    sequence, labels = tasks_and_labels(2, 3, 20, shared=False)
    chosen = started(PerClassTask(4), labels).choose(sequence[1], stream(0, "memory", 2))
    assert [set(labels[rows]) for rows in chosen] == [{3}, {4}, {5}]


def test_draws_are_uniform_over_all_that_is_stored():
    sequence, labels = tasks_and_labels(3, 2, 20, shared=True)
    memory = filled(sequence, labels, per_class=5)
    counts = np.zeros(len(labels))
    random = np.random.default_rng(0)
    for _ in range(3000):
        drawn = memory.draw(7, random)
        assert len(set(drawn)) == 7
        counts[drawn] += 1
    stored = np.concatenate(memory.parts)
    assert counts.sum() == counts[stored].sum() == 3000 * 7
    assert scipy.stats.chisquare(counts[stored]).pvalue > 0.01


def test_draws_from_each_task_are_uniform_over_its_part():
    sequence, labels = tasks_and_labels(3, 2, 20, shared=True)
    memory = filled(sequence, labels, per_class=5)
    counts = np.zeros(len(labels))
    random = np.random.default_rng(0)
    for _ in range(2000):
        for drawn, part in zip(memory.draw_each(4, random), memory.parts, strict=True):
            assert len(set(drawn)) == 4
            assert set(drawn) <= set(part)
            counts[drawn] += 1
    for part in memory.parts:
        assert scipy.stats.chisquare(counts[part]).pvalue > 0.01


@pytest.mark.parametrize("count", [10, 11, 1000])
def test_a_draw_larger_than_the_memory_is_all_of_it(count):
    sequence, labels = tasks_and_labels(1, 2, 20, shared=True)
    memory = filled(sequence, labels, per_class=5)
    random = np.random.default_rng(0)
    assert sorted(memory.draw(count, random)) == sorted(memory.parts[0])
    assert [sorted(part) for part in memory.draw_each(count, random)] == [sorted(memory.parts[0])]


def test_a_sample_leaves_its_source_alone():
    rows = np.arange(20)
    sample(rows, 5, np.random.default_rng(0)).sort()
    assert np.array_equal(rows, np.arange(20))
