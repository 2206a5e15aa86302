"""Short runs on real images, and what the paper leads one to expect of them.

Runs that only have to work are trained on a few images in the publishers' formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.commandline import Outcome
from helpers.precision import needs_bf16

import twofold
from twofold.benchmarks import Benchmark, Recipe
from twofold.evaluation.continual import Evaluator
from twofold.experiments.config import configure
from twofold.training import Progress, Training

Need = Callable[[str], Path | None]
Build = Callable[[str], Benchmark]


@pytest.fixture(scope="module", autouse=True)
def decoded(cache_folder: str) -> Iterator[None]:
    """Decoded images go to a folder of the tests, unless the data itself is in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        if "TWOFOLD_DATA" in os.environ:
            patch.setenv("TWOFOLD_CACHE", cache_folder)
        yield


@pytest.fixture(scope="module")
def benchmarks() -> dict[str, Benchmark]:
    return {}


@pytest.fixture
def build(need: Need, benchmarks: dict[str, Benchmark]) -> Build:
    """A benchmark on all its training images, made once, with some of its test images."""

    def build(name: str) -> Benchmark:
        if name not in benchmarks:
            recipe = Recipe.find(name)
            made = recipe.build(142, need(str(recipe.dataset)))
            tasks = tuple(replace(task, test=task.test[::20]) for task in made.tasks)
            benchmarks[name] = replace(made, tasks=tasks)
        return benchmarks[name]

    return build


@pytest.mark.parametrize("benchmark", ["split-cifar100", "split-mini-imagenet"])
def test_class_incremental(benchmark: str, small_images: Need) -> None:
    recipe = Recipe.find(benchmark)
    made = recipe.build(142, small_images(str(recipe.dataset)))
    for method in ("er+gem", "bic+agem"):
        run = twofold.run(made, method, iterations=2, tasks=2, batch_size=5, memory_per_class=5)
        check(run, iterations=4, tasks=2)
        later = run.columns["task"] > 1
        assert np.isfinite(run.columns["loss_old"][later].astype(float)).all()


def test_domain_incremental(small_images: Need) -> None:
    made = Recipe.find("domain-cifar100").build(142, small_images("cifar100"))
    run = twofold.run(made, "er+agem", mode="online", iterations=3, tasks=2)
    check(run, iterations=6, tasks=2)


def check(run: twofold.Run, iterations: int, tasks: int) -> None:
    """Complete, finite, and evaluated on the tasks seen so far after every iteration."""
    assert not run.summary["diverged"]
    assert run.accuracy.shape == (iterations, tasks)
    seen = run.columns["task"].astype(int)[:, None] > np.arange(tasks)
    assert (np.isfinite(run.accuracy) == seen).all()
    assert np.isfinite(run.columns["loss"].astype(float)).all()
    assert run.min is not None
    assert 0 <= run.min <= 100
    assert 0 <= run.avg <= 100


@pytest.mark.real_data
def test_rotated_mnist_is_learned_with_a_gap(build: Build) -> None:
    run = twofold.run(build("rotated-mnist"), "er", iterations=60)
    assert run.avg > 80
    # The stability gap: what was learned of a task is lost at the next one's start, then regained.
    first, task = run.accuracy[:, 0], run.columns["task"]
    before, during = first[task == 1][-1], first[task == 2]
    assert np.nanmin(during) < before - 5
    assert during[-1] > np.nanmin(during) + 5
    assert run.min is not None
    assert run.min < run.avg - 5


@pytest.mark.real_data
def test_a_run_that_diverges_says_so(build: Build) -> None:
    """Online with 0.1 and 10, a cell of the paper's table: with each of its seeds."""
    for seed in (142, 152, 162, 172, 182):
        run = twofold.run(
            build("rotated-mnist"),
            "er",
            **{"mode": "online", "lr": 0.1, "batch_size": 10, "seed": seed},
            **{"iterations": 150, "tasks": 2, "eval_schedule": "every:50"},
        )
        assert run.summary["diverged"], seed
        assert 5 < run.avg < 15


@pytest.mark.real_data
def test_a_diverged_run_on_the_command_line(
    run_tiny: Callable[..., Outcome],
    twofold: Callable[..., Outcome],
    need: Need,
    tmp_path: Path,
) -> None:
    """`run_tiny` is here for its engine, which makes runs in this process."""
    folder = need("mnist")
    data = () if folder is None else ("--data", folder)
    done = twofold(
        *("run", "rotated-mnist", "er", *data, "--out", tmp_path / "out", "--json", "--seed", 162),
        *("--mode", "online", "--lr", 0.1, "--batch-size", 10, "--tasks", 2),
        *("--iterations", 110, "--eval-schedule", "every:50", "--eval-size", 100),
    )
    (made,) = done.objects
    assert made["diverged"] is True
    assert made["avg"] == pytest.approx(9.8, abs=0.1)
    line, *table = done.err.splitlines()
    assert line.endswith("  diverged")
    assert any(row.rstrip().endswith("1 (1 diverged)") for row in table)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("benchmark", "batch_size", "iterations"),
    [
        ("rotated-mnist", 10, 6000),
        ("rotated-mnist", 64, 937),  # 60,000 = 937 * 64 + 32
        ("split-cifar100", 10, 500),
        ("domain-cifar100", 64, 156),  # 10,000 = 156 * 64 + 16
    ],
)
def test_online_is_one_pass(benchmark: str, batch_size: int, iterations: int, build: Build) -> None:
    """Without the last partial batch; offline takes what the paper says instead."""
    made = build(benchmark)
    for mode, expected in (("online", iterations), ("offline", made.offline_iterations)):
        config = configure(benchmark, "er", mode=mode, batch_size=batch_size)
        training = Training(made, *config.make_components(), config)
        assert {training.course.iterations(len(task.train)) for task in made.tasks} == {expected}


@needs_bf16
@pytest.mark.real_data
def test_bf16_evaluation_is_exact_in_mid_training(build: Build) -> None:
    """On images of the first task: at the first evaluation, which is audited, and at the second."""
    name, options = "split-cifar100", {"eval_precision": "bf16", "eval_schedule": "every:30"}
    config = configure(name, "er", mode="online", iterations=60, tasks=1, **options)
    benchmark = build(name)
    training = Training(benchmark, *config.make_components(), config)
    exact = Evaluator(benchmark, training.net, config.eval_size, config.seed)
    differences = []

    def compare(progress: Progress) -> None:
        sure = exact.subset(progress.task, training.objective.scores)
        columns = training.curves.columns()
        found = torch.tensor([float(columns[f"accuracy_{k + 1}"][-1]) for k in range(len(sure))])
        differences.append(float((found - sure).abs().max()))

    training.on_progress = compare
    result = training.run()
    assert differences == [0, 0]
    assert (result.audit["audits"], result.audit["images"]) == (1, len(benchmark.tasks[0].test))
    assert result.curves["accuracy_1"][59] > 15, "it has learned too little to tell"
