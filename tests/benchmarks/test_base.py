"""Benchmarks and recipes: pools, whitening, your own tensors, your own recipes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import three_channel_images
from torch import nn

from twofold import Benchmark, Recipe, run
from twofold.benchmarks import base
from twofold.datasets import Dataset, Split
from twofold.errors import UserError


def own_images() -> Benchmark:
    images, labels = three_channel_images(), torch.arange(50) % 2
    bright = (images.float() * 0.5 + 20).to(torch.uint8)
    return Benchmark.from_tensors(
        "mine",
        [
            (images, labels, bright[:10], labels[:10]),
            (images[:30], labels[:30] + 2, images[:8], labels[:8] + 2),
        ],
    )


def test_whitening_gives_the_training_set_mean_0_and_deviation_1():
    benchmark = own_images()
    x = benchmark.train.batch(np.arange(80)).x
    assert x.shape == (80, 3, 6, 5)
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3), unbiased=False), torch.ones(3), atol=1e-5, rtol=0)
    # And the test set is whitened with those statistics, not with its own.
    images = torch.cat([three_channel_images(), three_channel_images()[:30]])
    pixels = images.view(-1, 3).float() / 255
    bright = (three_channel_images()[:10].float() * 0.5 + 20).to(torch.uint8).float() / 255
    expected = (bright - pixels.mean(0)) / pixels.std(0, unbiased=False)
    seen = benchmark.test.batch(np.arange(10)).x
    torch.testing.assert_close(seen, expected.permute(0, 3, 1, 2), atol=1e-4, rtol=1e-4)


def test_a_batch_has_the_rows_that_were_asked_for():
    benchmark = own_images()
    rows = np.array([70, 3, 51])
    batch = benchmark.train.batch(rows)
    assert batch.rows.tolist() == rows.tolist()
    assert batch.y.tolist() == [2, 1, 3]
    torch.testing.assert_close(batch.x[1], benchmark.train.batch(np.arange(5)).x[3])


def test_your_own_tensors_make_a_benchmark():
    benchmark = own_images()
    assert benchmark.scenario == "class"
    assert [task.classes for task in benchmark.tasks] == [(0, 1), (2, 3)]
    assert [len(task.train) for task in benchmark.tasks] == [50, 30]
    assert [len(task.test) for task in benchmark.tasks] == [10, 8]
    assert benchmark.model()(benchmark.test.batch(np.arange(2)).x).shape == (2, 4)
    finished = run(benchmark, "er+gem", batch_size=10, iterations=3)
    assert 0 <= finished.avg <= 100


def test_floating_point_inputs_are_taken_as_they_are():
    x, y = torch.randn(20, 7, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 3
    benchmark = Benchmark.from_tensors("mine", [(x, y, x[:5], y[:5]), (x + 1, y, x, y)])
    assert benchmark.scenario == "domain"  # the tasks share classes
    torch.testing.assert_close(benchmark.train.batch(np.arange(20, 40)).x, x + 1, rtol=0, atol=0)
    assert run(benchmark, "joint+agem", batch_size=10, iterations=3).min is not None


def test_tasks_that_share_one_class_are_domain_incremental():
    x = torch.zeros(4, 2)
    tasks = [(x, torch.tensor(y), x, torch.tensor(y)) for y in ([0, 1, 0, 1], [1, 2, 1, 2])]
    assert Benchmark.from_tensors("mine", tasks).scenario == "domain"


def test_your_own_model_and_iterations_are_used():
    x, y = torch.zeros(6, 2), torch.tensor([0, 1, 0, 1, 0, 1])
    benchmark = Benchmark.from_tensors(
        "mine", [(x, y, x, y)], model=lambda: nn.Linear(2, 5), offline_iterations=4
    )
    finished = run(benchmark, "er", batch_size=3)
    assert len(finished.columns["loss"]) == 4
    assert benchmark.model().out_features == 5


def test_unknown_benchmarks_are_refused():
    with pytest.raises(UserError, match="did you mean 'rotated-mnist'"):
        Recipe.find("rotated-mnits")


@pytest.fixture
def halves(monkeypatch):
    """A recipe with no more than the guide asks for: a dataset, divided in another way."""
    monkeypatch.setattr(Recipe, "known", dict(Recipe.known))
    random = np.random.default_rng(0)

    def split(count: int) -> Split:
        pixels = random.integers(0, 256, (count, 28, 28, 1), dtype=np.uint8)
        return Split(pixels, np.arange(count) % 10)

    data = Dataset("mnist", split(100), split(40), tuple("0123456789"))
    monkeypatch.setattr(base, "load", lambda name, folder: data)

    class Halves(Recipe, name="halves"):
        title, about = "Halves", "2 tasks: half of the images each"
        dataset, scenario = "mnist", "domain"
        tasks, offline_iterations = 2, 5
        model = Recipe.find("rotated-mnist").model

        @classmethod
        def divide(cls, data, seed):
            train, test = (
                base.Images(torch.from_numpy(s.images), torch.from_numpy(s.labels))
                for s in (data.train, data.test)
            )
            ten = tuple(range(10))
            first = base.Task(np.arange(50), np.arange(20), ten)
            second = base.Task(np.arange(50, 100), np.arange(20, 40), ten)
            return train, test, [first, second]

    return Halves


def test_a_recipe_needs_no_published_whitening(halves):
    seen = halves.build(0).train.batch(np.arange(100)).x
    assert abs(float(seen.mean())) < 1e-4
    assert run("halves", "er", batch_size=10, iterations=2).avg is not None


def test_published_whitening_is_refused_for_a_recipe_without_it(halves):
    with pytest.raises(UserError, match="halves has no published whitening"):
        halves.build(0, whitening="published")


@pytest.mark.parametrize(
    ("benchmark", "parameters"),
    [
        ("rotated-mnist", 478_410),
        ("domain-cifar100", 1_096_360),
        ("split-cifar100", 1_109_240),
        ("split-mini-imagenet", 1_157_240),
    ],
)
def test_each_benchmark_has_its_network(benchmark, parameters):
    module = Recipe.find(benchmark).model()
    assert sum(p.numel() for p in module.parameters()) == parameters
