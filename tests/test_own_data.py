"""Data and networks of one's own: what is wrong with them is said, and in which task."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from twofold import Benchmark, Recipe, run
from twofold.benchmarks import base
from twofold.datasets import Dataset, Split
from twofold.errors import UserError


def x(count: int, *shape: int) -> Tensor:
    return torch.randn(count, *(shape or (8,)), generator=torch.Generator().manual_seed(count))


def y(count: int) -> Tensor:
    return torch.arange(count) % 3


def images(count: int, *shape: int) -> Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, *(shape or (6, 5, 2))), generator=random).to(torch.uint8)


GOOD = (x(60), y(60), x(30), y(30))
IMAGES = (images(60), y(60), images(30), y(30))


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        # In total there are as many labels as inputs.
        ([(x(60), y(59), x(30), y(30)), (x(59), y(60), x(30), y(30))], "task 1.*60 .*59 labels"),
        ([GOOD, (x(60), y(60), x(30), y(29))], "task 2: 30 test inputs, 29 labels"),
        ([GOOD, (x(60), y(60), x(0), y(0))], "task 2: no test examples"),
        ([GOOD, (x(0), y(0), x(30), y(30))], "task 2: no training examples"),
        ([GOOD, (x(60), y(60) - 1, x(30), y(30))], "task 2: training labels.* -1"),
        ([GOOD, (x(60), y(60), x(30), y(30) - 1)], "task 2: test labels.* -1"),
        ([(x(60), y(60) + 0.5, x(30), y(30))], "task 1: training labels.*whole.* 0.5"),
        ([(x(60), x(60)[:, :3], x(30), y(30))], "task 1: training labels.*one.*60, 3"),
        ([(x(60).long(), y(60), x(30), y(30))], "task 1: training inputs are int64"),
        ([(x(60) > 0, y(60), x(30), y(30))], "task 1: training inputs are bool"),
        ([IMAGES, (images(60), y(60), x(30, 6, 5, 2), y(30))], "task 2: test inputs are float32"),
        ([GOOD, IMAGES], "task 2: training inputs are uint8.* float32"),
        ([(images(60, 6, 5), y(60), images(30, 6, 5), y(30))], r"task 1:.*\[N, H, W, C\].*6, 5"),
        ([GOOD, (x(60), y(60), x(30, 7), y(30))], r"task 2: test inputs.*\[7\].*\[8\]"),
        ([GOOD, GOOD[:3]], "task 2.*four tensors.* 3"),
    ],
)
def test_what_is_wrong_is_said(tasks, message):
    with pytest.raises(UserError, match=f"^benchmark 'mine', {message}"):
        Benchmark.from_tensors("mine", tasks)


def test_a_constant_channel_is_left_at_zero():
    for value in (0, 1, 77, 200, 255):
        constant = images(60)
        constant[..., 1] = value
        benchmark = Benchmark.from_tensors("mine", [(constant, y(60), constant[:30], y(30))])
        seen = benchmark.train.batch(np.arange(60)).x
        torch.testing.assert_close(seen[:, 0].std(unbiased=False), torch.tensor(1.0))
        torch.testing.assert_close(seen[:, 1], torch.zeros(60, 6, 5), rtol=0, atol=1e-5)


def test_other_floating_point_numbers_become_float32():
    for dtype in (torch.float64, torch.float16):
        task = (x(60).to(dtype), y(60), x(30), y(30).int())
        benchmark = Benchmark.from_tensors("mine", [task])
        assert benchmark.train.images.dtype == benchmark.test.images.dtype == torch.float32
        assert run(benchmark, "er", batch_size=10, iterations=2).avg is not None


def test_arrays_will_do():
    task = tuple(part.numpy() for part in GOOD)
    assert run(Benchmark.from_tensors("mine", [task]), "er", batch_size=10, iterations=2)


def test_a_network_with_too_few_outputs_is_refused():
    tasks = [GOOD, (x(60), y(60) + 3, x(30), y(30) + 3)]
    benchmark = Benchmark.from_tensors("mine", tasks, model=lambda: nn.Linear(8, 5))
    with pytest.raises(UserError, match=r"5 outputs.*'mine'.*labels up to 5.*at least 6"):
        run(benchmark, "er", batch_size=10, iterations=2)
    assert run(benchmark, "er", batch_size=10, iterations=2, tasks=1)


@pytest.mark.parametrize("method", ["der", "bic", "bic(augment=pad)+agem"])
def test_what_is_no_image_is_not_augmented(method):
    tasks = [GOOD, (x(60), y(60) + 3, x(30), y(30) + 3)]
    benchmark = Benchmark.from_tensors("mine", tasks)
    name = method[:3]
    message = rf"{name} augments images, and 'mine' has .*\[8\]: write {name}\(augment=none\)"
    with pytest.raises(UserError, match=message):
        run(benchmark, method, batch_size=10, iterations=2)
    assert run(benchmark, f"{name}(augment=none)", batch_size=10, iterations=2)


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


def test_a_recipe_without_published_whitening_says_so(halves):
    with pytest.raises(UserError, match="halves has no published whitening"):
        halves.build(0, whitening="published")
