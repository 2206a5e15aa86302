"""Rotated MNIST: rotation against Pillow, and the benchmark from small and from real images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from twofold.benchmarks import Recipe
from twofold.benchmarks.rotated_mnist import ANGLES, rotate
from twofold.datasets import load


def noise(size: int = 28, count: int = 4, channels: int = 1) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    shape = (count, size, size, channels)
    return torch.randint(1, 256, shape, generator=random, dtype=torch.uint8)


def by_pillow(images: torch.Tensor, angle: float) -> torch.Tensor:
    turned = [
        np.asarray(Image.fromarray(image).rotate(angle, Image.Resampling.NEAREST))
        for image in images[..., 0].numpy()
    ]
    return torch.from_numpy(np.stack(turned))[..., None]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(angle=st.one_of(st.sampled_from(ANGLES), st.floats(-360, 360)))
def test_rotation_is_pillows(angle):
    images = noise()
    differing = (rotate(images, angle) != by_pillow(images, angle)).float().mean()
    assert differing < 0.02  # ties between two nearest pixels


@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_is_pillows_at_the_angles_of_rotated_mnist(angle):
    images = noise()
    differing = (rotate(images, angle) != by_pillow(images, angle)).float().mean()
    assert differing < 0.005
    assert (rotate(images, angle) != images).any() == (angle != 0)


@pytest.mark.parametrize(("angle", "quarters"), [(0, 0), (90, 1), (180, 2), (270, 3), (-90, -1)])
@pytest.mark.parametrize("size", [7, 28])
def test_quarter_turns_are_exact_and_counter_clockwise(angle, quarters, size):
    images = noise(size, channels=3)
    assert torch.equal(rotate(images, angle), torch.rot90(images, quarters, (1, 2)))


def test_rotation_fills_with_black_and_only_moves_pixels():
    images = noise()
    turned = rotate(images, 80)
    assert turned.dtype == torch.uint8
    assert not turned[:, [0, 0, -1, -1], [0, -1, 0, -1]].any()  # the corners come from outside
    for before, after in zip(images, turned, strict=True):
        assert set(after.unique().tolist()) <= {0, *before.unique().tolist()}


def test_rotated_mnist(images):
    folder = images("mnist")
    data = load("mnist", folder)
    benchmark = Recipe.find("rotated-mnist").build(142, folder)
    assert benchmark.scenario == "domain"
    assert [(len(t.train), len(t.test)) for t in benchmark.tasks] == 3 * [
        (len(data.train.labels), len(data.test.labels))
    ]
    # Of the unrotated images, used for all rotations.
    mean, deviation = (value(data.train.images) / 255 for value in (np.mean, np.std))
    for task, angle in zip(benchmark.tasks, (0, 80, 160), strict=True):
        batch = benchmark.train.batch(task.train[:50])
        raw = by_pillow(torch.tensor(data.train.images[:50]), angle).permute(0, 3, 1, 2)
        expected = (raw / 255 - mean) / deviation
        assert ((batch.x - expected).abs() > 0.01).float().mean() < 0.005
        assert batch.y.tolist() == data.train.labels[:50].tolist()
        test = benchmark.test.batch(task.test[-5:])
        assert test.y.tolist() == data.test.labels[-5:].tolist()
    x = benchmark.train.batch(benchmark.tasks[0].train).x
    assert abs(float(x.mean())) < 0.01
    assert abs(float(x.std()) - 1) < 0.01
