"""What every memory does: it stores what was seen, within its limits, and resumes bitwise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.memories import shown

import twofold
from twofold.errors import UserError
from twofold.experiments import checkpoints
from twofold.memories import Memory
from twofold.memories.reading import read
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

TEXTS = [
    "per-class-task(4)",
    "per-class-task(4,current=true)",
    "per-class(4)",
    "per-class(4,current=true,replay=5)",
    "reservoir(20)",
    "reservoir(20,current=false)",
    "class-balanced(20)",
    "class-balanced(per_class=3,current=false)",
    "ring(20,replay=30)",
    "ring(per_class=3)",
    "herding(20)",
    "herding(per_class=3)",
]
every_memory = pytest.mark.parametrize("text", TEXTS)


def test_every_memory_is_here():
    assert {read(text).name for text in TEXTS} == {*Memory.known}


def training_of(text: str, method: str = "er", benchmark=None, **options) -> Training:
    objective, routines = Method.parse(method).make()
    small = {"lr": 0.02, "batch_size": 8, "seed": 3, "iterations": 4} | options
    small |= {"eval_schedule": "every:4", "eval_size": 9}
    settings = Settings(memory=text, **small)
    return Training(benchmark or class_benchmark(), objective, routines, settings)


@every_memory
@pytest.mark.parametrize("shared", [False, True])
def test_only_what_was_seen_is_stored_within_the_limits(text, shared):
    labels = np.tile(np.arange(3), 20) if shared else np.repeat(np.arange(6), 10)
    memory = read(text)
    for parts in shown(memory, labels):
        stored = np.concatenate([np.empty(0, np.int64), *parts])
        assert len(set(stored)) == len(stored)
        assert (memory.arrival[stored] > 0).all()
        size, quota = getattr(memory, "size", None), memory.quota()
        assert size is None or len(stored) <= size
        counts = np.bincount(labels[stored], minlength=6)
        tasks = 3 if memory.name == "per-class-task" else 1
        assert quota is None or counts.max() <= tasks * quota
    for k, part in enumerate(memory.parts):
        assert set(part) <= set(np.array_split(np.arange(60), 3)[k])
    assert len(memory) == sum(map(len, memory.parts)) > 0


@every_memory
def test_a_memory_of_the_current_task_holds_it_and_others_do_not(text):
    memory = read(text)
    history = shown(memory, np.repeat(np.arange(6), 10))
    assert bool(history[0]) == memory.current
    if memory.current:
        assert set(history[0][0]) <= set(range(20))


@every_memory
@pytest.mark.parametrize("method", ["er+gem", "der", "bic", "er+lpr"])
def test_a_memory_goes_with_every_kind_of_method(text, method):
    training = training_of(text, method)
    result = training.run()
    assert result.finite
    assert len(result.curves["loss"]) == 12


@every_memory
@pytest.mark.parametrize("method", ["er+gem", "der"])
def test_a_run_is_resumed_in_the_middle_of_a_task(text, method, tmp_path):
    untouched, resumed = (training_of(text, method, domain_benchmark()) for _ in range(2))

    def every() -> None:
        if (untouched.task, untouched.n) == (2, 2):
            checkpoints.write(tmp_path / "checkpoint.pt", untouched.state())

    first = untouched.run(every)
    resumed.restore(checkpoints.read(tmp_path / "checkpoint.pt"))
    second = resumed.run()
    for name, column in first.curves.items():
        np.testing.assert_array_equal(column, second.curves[name], err_msg=name)
    assert torch.equal(untouched.net.values, resumed.net.values)
    for a, b in zip(untouched.memory.parts, resumed.memory.parts, strict=True):
        assert np.array_equal(a, b)


def replayed(training: Training) -> list[int]:
    """Return the size of each replay batch in later tasks."""
    sizes: list[int] = []
    passes = training.objective.passes

    def noted(draw):
        sizes.append(0 if draw.old is None else len(draw.old.y))
        return passes(draw)

    training.objective.passes = noted
    training.run()
    return sizes[4:]


@pytest.mark.parametrize("count", [1, 5, 8, 15])
def test_the_replay_batch_has_the_size_that_is_asked_for(count):
    assert set(replayed(training_of(f"per-class-task(20,replay={count})"))) == {count}
    assert set(replayed(training_of(f"reservoir(16,replay={count})", "er+gem"))) == {count}


def test_without_a_size_the_replay_batch_is_as_large_as_a_batch():
    assert set(replayed(training_of("reservoir(30)"))) == {8}


def test_the_current_task_is_replayed_if_it_is_stored():
    for text, there in (("reservoir(60)", True), ("reservoir(60,current=false)", False)):
        for method in ("er", "er+gem"):
            training = training_of(text, method, iterations=7)
            current: set[int] = set()
            passes = training.objective.passes

            def noted(draw, passes=passes, current=current):
                if draw.task == 2:
                    current.update(draw.old.y.tolist())
                return passes(draw)

            training.objective.passes = noted
            training.run()
            assert bool(current & {3, 4, 5}) == there
            assert current & {0, 1, 2}


def test_the_first_task_is_the_same_with_every_memory():
    runs = [training_of(text, tasks=1) for text in TEXTS]
    for run in runs:
        run.run()
    assert all(torch.equal(run.net.values, runs[0].net.values) for run in runs)


def test_memory_is_drawn_alike_by_all_methods_with_one_seed():
    parts = [training_of("reservoir(20)", method) for method in ("er", "er+gem", "der")]
    for run in parts:
        run.run()
    for run in parts[1:]:
        for a, b in zip(run.memory.parts, parts[0].memory.parts, strict=True):
            assert np.array_equal(a, b)


def test_a_memory_of_ones_own(tmp_path):
    """In twenty lines: it keeps the examples of the lowest labels."""
    file = tmp_path / "lowest.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from twofold.memories import Memory\n"
        "@dataclass\n"
        "class Lowest(Memory, name='lowest'):\n"
        "    '''The lowest labels.'''\n"
        "    size: int = 10\n"
        "    def keep(self, rows):\n"
        "        return self.first(rows, self.size, by=-self.labels)\n"
    )
    try:
        given = {"batch_size": 8, "iterations": 3, "plugins": [str(file)]}
        run = twofold.run(class_benchmark(), "er+gem", memory="lowest(7,current=true)", **given)
        assert run.config.memory == "lowest(7,current=true)"
        assert run.config.plugins == [str(file)]
        plain = twofold.configure(class_benchmark(), "er", **given)
        assert plain.plugins == []  # the plugin defines nothing of this run
    finally:
        Memory.known.pop("lowest", None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("reservoir(0)", "reservoir's size must be above 0, not 0"),
        ("ring(-1)", "ring's size must be above 0, not -1"),
        ("ring(per_class=0)", "ring's per_class must be above 0, not 0"),
        ("ring(5,per_class=3)", "ring has a size or a quota per_class, not both"),
        ("reservoir(replay=0)", "reservoir's replay must be above 0, not 0"),
        ("reservoir(many)", "reservoir's size must be a whole number, not 'many'"),
        ("resevoir", "unknown memory 'resevoir': did you mean 'reservoir'?"),
        ("reservoir(", "memory 'reservoir(': brackets don't match; write reservoir(2000)"),
        ("ring+ring", "memory 'ring+ring': there is one memory; write reservoir(2000)"),
        ("herding(current=true)", "herding chooses at the end of a task"),
        ("per-class-task(0)", "this method replays, but with memory per class 0"),
        ("per-class-task(-1)", "per-class-task's per_class must be at least 0, not -1"),
        ("per-class-task(21)", "a quota of 21 examples per class is larger than a class"),
        ("ring(per_class=21)", "a quota of 21 examples per class is larger than a class"),
    ],
)
def test_a_wrong_memory_is_refused_in_one_line(text, why):
    with pytest.raises(UserError) as caught:
        twofold.run(class_benchmark(), "er", memory=text, batch_size=8)
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)
