"""Short runs on real images, and what the paper leads one to expect of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from commandline import Outcome

import twofold
from twofold.benchmarks import Benchmark, Recipe
from twofold.experiments.config import configure
from twofold.training import Training

pytest_plugins = ("commandline_fixtures",)
pytestmark = pytest.mark.real_data

Need = Callable[[str], Path | None]


@pytest.fixture(autouse=True)
def decoded(cache_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded images go to a folder of the tests, unless the data itself is in the user's."""
    if "TWOFOLD_DATA" in os.environ:
        monkeypatch.setenv("TWOFOLD_CACHE", cache_folder)


@pytest.fixture
def need(decoded: None, need: Need) -> Need:
    """As in conftest.py, after the cache is in place."""
    return need


@pytest.mark.parametrize("method", ["er+gem", "bic+agem"])
@pytest.mark.parametrize(
    ("benchmark", "dataset"),
    [("split-cifar100", "cifar100"), ("split-mini-imagenet", "mini-imagenet")],
)
def test_class_incremental(benchmark: str, dataset: str, method: str, need: Need) -> None:
    run = twofold.run(
        benchmark, method, data=need(dataset), iterations=3, tasks=2, batch_size=10, eval_size=20
    )
    check(run, iterations=6, tasks=2)
    late = run.curves["task"] == 2
    assert np.isfinite(run.curves["loss_old"][late].astype(float)).all()


def test_domain_incremental(need: Need) -> None:
    run = twofold.run(
        "domain-cifar100",
        "er+agem",
        data=need("cifar100"),
        mode="online",
        iterations=3,
        tasks=2,
        eval_size=20,
    )
    check(run, iterations=6, tasks=2)


def check(run: twofold.Run, iterations: int, tasks: int) -> None:
    """Complete, finite, and evaluated on the tasks seen so far after every iteration."""
    assert not run.summary["diverged"]
    assert run.accuracy.shape == (iterations, tasks)
    seen = run.curves["task"].astype(int)[:, None] > np.arange(tasks)
    assert (np.isfinite(run.accuracy) == seen).all()
    assert np.isfinite(run.curves["loss"].astype(float)).all()
    assert run.min is not None
    assert 0 <= run.min <= 100
    assert 0 < run.avg <= 100


def test_rotated_mnist_is_learned_with_a_gap(need: Need) -> None:
    run = twofold.run(
        "rotated-mnist", "er", data=need("mnist"), iterations=60, eval_size=500, eval_every=2
    )
    assert run.avg > 80
    # The stability gap: what was learned of a task is lost at the next one's start, then regained.
    first, task = run.accuracy[:, 0], run.curves["task"]
    before, during = first[task == 1][-1], first[task == 2]
    assert np.nanmin(during) < before - 5
    assert during[-1] > np.nanmin(during) + 5
    assert run.min is not None
    assert run.min < run.avg - 5


@pytest.fixture(scope="module")
def rotated_mnist(data_folder: Path | None, cache_folder: str) -> Iterator[Benchmark]:
    with pytest.MonkeyPatch.context() as patch:
        if "TWOFOLD_DATA" in os.environ:
            patch.setenv("TWOFOLD_CACHE", cache_folder)
        yield Recipe.find("rotated-mnist").build(142, data_folder)


@pytest.mark.parametrize("seed", [142, 152, 162, 172, 182])
def test_a_run_that_diverges_says_so(rotated_mnist: Benchmark, seed: int) -> None:
    """Online with 0.1 and 10, of which the paper's table says that it does not converge."""
    config = configure(
        *("rotated-mnist", "er"),
        **{"mode": "online", "lr": 0.1, "batch_size": 10, "seed": seed},
        **{"iterations": 150, "tasks": 2, "eval_every": 50, "eval_size": 100},
    )
    result = Training(rotated_mnist, *config.make_components(), config.settings()).run()
    assert not result.finite
    assert result.task_ends[-1] == pytest.approx([9.8, 9.8])  # the share of zeros


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
        *("--iterations", 110, "--eval-every", 50, "--eval-size", 100),
    )
    (made,) = done.objects
    assert made["diverged"] is True
    assert made["avg"] == pytest.approx(9.8, abs=0.1)
    assert "seed 162: MIN" in done.err
    assert done.err.count("diverged") == 2  # in the line about the run, and in the table
    assert "1 (1 diverged)" in done.err


@pytest.mark.parametrize(
    ("benchmark", "dataset", "batch_size", "iterations"),
    [
        ("rotated-mnist", "mnist", 10, 6000),
        ("rotated-mnist", "mnist", 64, 937),  # 60,000 = 937 * 64 + 32
        ("split-cifar100", "cifar100", 10, 500),
        ("domain-cifar100", "cifar100", 64, 156),  # 10,000 = 156 * 64 + 16
    ],
)
def test_online_is_one_pass(
    benchmark: str, dataset: str, batch_size: int, iterations: int, need: Need
) -> None:
    """Without the last partial batch; offline takes what the paper says instead."""
    made = Recipe.find(benchmark).build(142, need(dataset))
    for mode, expected in (("online", iterations), ("offline", made.offline_iterations)):
        config = configure(benchmark, "er", mode=mode, batch_size=batch_size)
        training = Training(made, *config.make_components(), config.settings())
        assert {training._iterations(len(task.train)) for task in made.tasks} == {expected}
