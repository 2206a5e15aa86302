"""Datasets of torch: read once, and odd items are named in one line."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import three_channel_images
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

import twofold
from twofold import Benchmark, UserError

X, Y = torch.randn(24, 6, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 2
IMAGES = three_channel_images(24)


class Items(Dataset):
    """A dataset of given items, which counts how often each is read."""

    def __init__(self, items) -> None:
        self.items = list(items)
        self.reads = [0] * len(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int):
        self.reads[index] += 1
        return self.items[index]


class Stream(IterableDataset):
    def __len__(self) -> int:
        return len(X)

    def __iter__(self):
        return iter(zip(X, Y, strict=True))


def tasks(dataset) -> list[tuple]:
    return [(dataset, Subset(dataset, range(8)))] * 2


@pytest.mark.parametrize(
    "items",
    [
        TensorDataset(X, Y),
        Items((x.numpy(), np.int64(y)) for x, y in zip(X, Y, strict=True)),
        Items((x.tolist(), int(y)) for x, y in zip(X, Y, strict=True)),
    ],
    ids=["tensors", "arrays", "lists"],
)
def test_a_run_on_datasets_is_that_on_their_tensors(items):
    own = Benchmark.from_tensors("mine", [(X, Y, X[:8], Y[:8])] * 2)
    benchmark = Benchmark.from_datasets("mine", tasks(items))
    one, other = (twofold.run(each, "er", batch_size=8, iterations=2) for each in (own, benchmark))
    assert one.config.identity() == other.config.identity()
    assert np.array_equal(one.columns["loss"], other.columns["loss"])


def test_every_item_is_read_once():
    items = Items(zip(X, Y, strict=True))
    Benchmark.from_datasets("mine", [(items, TensorDataset(X, Y))])
    assert items.reads == [1] * 24


def test_a_stream_of_items_will_do():
    assert len(Benchmark.from_datasets("mine", [(Stream(), Stream())]).train) == 24


@pytest.mark.parametrize(
    ("made", "channels"),
    [
        (lambda image: Image.fromarray(image.numpy()), 3),
        (lambda image: Image.fromarray(image.numpy()).convert("P"), 3),
        (lambda image: Image.fromarray(image.numpy()).convert("L"), 1),
        (lambda image: image.numpy()[..., 0], 1),
        (lambda image: image.permute(2, 0, 1), 3),
    ],
    ids=["rgb", "palette", "grey", "array", "channels first"],
)
def test_images_are_whitened(made, channels):
    items = Items((made(image), int(y)) for image, y in zip(IMAGES, Y, strict=True))
    benchmark = Benchmark.from_datasets("mine", [(items, items)])
    x = benchmark.train.batch(np.arange(24)).x
    assert x.shape == (24, channels, 6, 5)
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(channels), atol=1e-5, rtol=0)


class Broken(Dataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int):
        raise OSError(f"no file\n{index}")


GOOD = TensorDataset(X, Y)
PLACE = "benchmark 'mine', task 1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "benchmark 'mine' needs a list of tasks, not 5"),
        ([GOOD], f"{PLACE}: a task has two datasets, for training and for tests"),
        ([(GOOD,)], f"{PLACE}: a task has two datasets, for training and for tests, not 1"),
        ([(Items([]), GOOD)], f"{PLACE}, training data: the dataset is empty"),
        ([(Items(X), GOOD)], f"{PLACE}, training item 0: expected a pair of input and label"),
        ([(GOOD, Items([(X[0], "cat")]))], f"{PLACE}, test item 0: a label is a .*, not 'cat'"),
        ([(GOOD, Items([(X[0], 0.5)]))], "a label is a whole number, not 0.5"),
        ([(GOOD, Items([(X[0], Y)]))], "a label is a whole number, not tensor"),
        ([(Items([("a", 0)]), GOOD)], "an input is a tensor, an array or a PIL image, not 'a'"),
        (
            [(Items([(X[0], 0), (X[0, :3], 1)]), GOOD)],
            r"training item 1: its input is of shape \[3\] \(float32\), but .* item 0 is \[6\]",
        ),
        ([(Items([(X[0], 0), (X[0] > 0, 1)]), GOOD)], r"item 1: .*\[6\] \(bool\), but"),
        ([(Broken(), GOOD)], r"the dataset cannot be read \(OSError: no file 0\)"),
        ([(Items([(X[0], -1)]), GOOD)], "task 1: training labels must be whole numbers from 0 on"),
    ],
)
def test_odd_items_are_named_in_one_line(given, message):
    with pytest.raises(UserError, match=message) as caught:
        Benchmark.from_datasets("mine", given)
    assert "\n" not in str(caught.value)
