"""The length and the order of training: equal training has one identity; mistakes are one line."""

from __future__ import annotations

import pytest
from helpers.benchmarks import class_benchmark

from twofold import UserError, configure
from twofold.experiments.estimate import load_of
from twofold.experiments.plans import _tasks
from twofold.experiments.reader import config_of
from twofold.experiments.studies import load

FREE = {"task_free": True, "memory": "reservoir(500)"}


def configured(method="er", benchmark="rotated-mnist", **options):
    return configure(benchmark, method, **options)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"order": "1,2,3"}, {}),
        ({"order": " 1, 2 "}, {"tasks": 2}),
        ({"order": "1,2,3", "tasks": 2}, {"tasks": 2}),
        ({"order": "2,1,2", "tasks": 3}, {"order": "2,1,2"}),
        ({"order": "1,2,3", "parts": 2}, {"parts": 2}),
        ({"parts": 4, "tasks": 4}, {"parts": 4}),
        ({"mode": "online", "epochs": 1}, {"mode": "online"}),
        ({"blur": 0}, {}),
    ],
)
def test_equal_training_is_one_run(one, other):
    assert configured(**one) == configured(**other)
    assert configured(**one).identity() == configured(**other).identity()


def test_different_training_is_a_different_run():
    options = [{}, FREE, {"memory": "reservoir(500)"}, {"order": "1", "parts": 2}, {"parts": 2}]
    options += [{"order": "1"}, {"order": "1,2,1"}, {"order": "1,2,1", "tasks": 2}, {"tasks": 2}]
    assert len({configured(**each).identity() for each in options}) == len(options)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"epochs": 0}, "epochs must be at least 1, not 0"),
        ({"epochs": 2, "iterations": 5}, "set epochs or iterations, not both: 2 and 5"),
        (
            {"epochs": 2, "mode": "online"},
            "online training is one pass over each task, not 2: set the mode to offline, or leave "
            "epochs out",
        ),
        (
            {"scenario": "task", **FREE},
            "scenario task needs the task of every example: leave task-free out",
        ),
        ({"blur": 1}, "blur must be at least 0 and below 1, not 1"),
        ({"blur": -0.1}, "blur must be at least 0 and below 1, not -0.1"),
        ({"order": "1,9"}, "rotated-mnist has 3 tasks, so order can't name 9"),
        ({"order": ""}, "order must be numbers of tasks such as 1,2,1, not ''"),
        ({"order": "1,,2"}, "order must be numbers of tasks such as 1,2,1, not '1,,2'"),
        ({"order": "1,\n2"}, r"order must be numbers of tasks such as 1,2,1, not '1,\n2'"),
        ({"order": "1,٢"}, "order must be numbers of tasks such as 1,2,1, not '1,٢'"),
        ({"order": "0,1"}, "order must be numbers of tasks such as 1,2,1, not '0,1'"),
        ({"order": [1, 2]}, "order must be text, not [1, 2]"),
        ({"order": "1,2,1", "tasks": 4}, "rotated-mnist in this order has 3 tasks, not 4"),
        ({"parts": 0}, "parts must be at least 1, not 0"),
        ({"parts": 10**6}, "parts must be at most 10,000, not 1000000"),
        ({"parts": 2, "tasks": 3}, "rotated-mnist in 2 parts has 2 tasks, not 3"),
        (
            {"parts": 2, "order": "1,1"},
            "parts divide the data of each task once, and order 1,1 repeats one",
        ),
        (
            {"task_free": True},
            "a task-free stream stores examples as they come: set a memory that holds the current "
            "task, such as reservoir(2000), not per-class-task(100)",
        ),
    ],
)
def test_mistakes(options, line):
    with pytest.raises(UserError) as caught:
        configured(**options)
    assert str(caught.value) == line


def test_methods_that_make_no_sense():
    with pytest.raises(UserError, match="gem has a reference for each past task"):
        configured("er+gem", **FREE)
    with pytest.raises(UserError, match="bic divides classes"):
        configured("bic", "split-cifar100", order="1,2,1")
    with pytest.raises(UserError, match="class-incremental"):
        configured("er-ace", "split-cifar100", parts=2)
    configured("er-ace", "split-cifar100", order="1,2,1")


def test_task_ids_are_there_unless_the_stream_is_task_free():
    assert configured().task_ids
    assert not configured(**FREE).task_ids


def test_own_tensors_have_an_order_too():
    assert configured(benchmark=class_benchmark(), order="3,1").order == "3,1"
    with pytest.raises(UserError, match="class-toy has 3 tasks, so order can't name 4"):
        configured(benchmark=class_benchmark(), order="4")


def test_a_stored_order_is_checked():
    entries = {"components": [["er", {"classes": "all"}]], "method": "er", "order": "x"}
    with pytest.raises(UserError, match="order must be numbers of tasks"):
        config_of({**entries, "benchmark": "rotated-mnist"})


def test_studies_have_these_keys(tmp_path):
    file = tmp_path / "streams.toml"
    file.write_text(
        'title = "streams"\n[[grid]]\nbenchmark = "rotated-mnist"\nmethod = "er"\n'
        'order = ["1,2,1", "2,1"]\nblur = [0.0, 0.1]\nepochs = 1\n'
        '[[grid]]\nbenchmark = "rotated-mnist"\nmethod = "er"\nparts = 2\ntask_free = true\n'
        'memory = "reservoir(500)"\n'
    )
    configs = load(str(file)).configs()
    assert [(c.order, c.blur, c.parts, c.task_free) for c in configs] == [
        ("1,2,1", 0.0, None, False),
        ("1,2,1", 0.1, None, False),
        ("2,1", 0.0, None, False),
        ("2,1", 0.1, None, False),
        (None, 0.0, 2, True),
    ]


# Estimates


def load_in(**options):
    from twofold import Recipe

    sizes = Recipe.find("rotated-mnist").published_sizes
    assert sizes is not None
    return load_of(configured(**{"batch_size": 100} | options), sizes, batch_norm=False)


def test_estimates_know_the_length():
    """60,000 images in batches of 100 are 600 iterations."""
    assert load_in(epochs=2).passes == load_in(iterations=1200).passes
    assert load_in(parts=3, epochs=1).passes == 3 * 600
    assert load_in(order="1", parts=3, epochs=1).passes == 3 * 200


def test_estimates_know_which_test_sets_are_evaluated():
    """Ten iterations per task, each evaluated on 100 images per test set; 10,000 at the end."""
    few = {"iterations": 10, "eval_size": 100}
    assert load_in(**few).evaluated == (1 + 2 + 3) * (10 * 100 + 10_000)
    assert load_in(order="1,2,1,2", **few).evaluated == (1 + 2 + 2 + 2) * (10 * 100 + 10_000)
    assert load_in(order="1", parts=3, **few).evaluated == 3 * (10 * 100 + 10_000)


def test_a_task_free_stream_replays_one_batch_in_every_task():
    assert load_in(iterations=10, **FREE).images == 3 * 10 * 200
    assert load_in(iterations=10).images == 10 * 100 + 2 * 10 * 200


def test_plans_know_the_number_of_tasks():
    assert _tasks(configured(order="1,2,1,3")) == 4
    assert _tasks(configured(order="1,2,1,3", tasks=2)) == 2
    assert _tasks(configured(parts=7)) == 7
    assert _tasks(configured()) == 3
