"""Random crops and flips: what they may show, how often, and that shifts are exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from torch.nn import functional as F

from twofold.augmentation import augment


def images(n: int = 5, height: int = 12, width: int = 10, channels: int = 3) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.randn(n, channels, height, width, generator=random)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


both = pytest.mark.parametrize("how", ["crop", "pad"])


@both
@pytest.mark.parametrize("shape", [(1, 1, 28, 28), (5, 3, 32, 32), (3, 3, 84, 84), (4, 2, 9, 14)])
def test_shape_and_type_stay(how, shape):
    x = torch.zeros(shape)
    seen = augment(x, how, generator())
    assert seen.shape == shape
    assert seen.dtype == x.dtype


@both
def test_values_stay_within_the_image(how):
    x = images(200)
    seen = augment(x, how, generator())
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)  # of each channel
    assert ((seen >= low - 1e-5) & (seen <= high + 1e-5)).all()


@both
def test_images_are_augmented_each_in_its_own_way(how):
    x = images(1).repeat(20, 1, 1, 1)
    seen = augment(x, how, generator())
    assert len(seen.flatten(1).unique(dim=0)) > 15
    assert torch.equal(x, images(1).repeat(20, 1, 1, 1))


@both
def test_channels_move_together(how):
    x = images(50, channels=1).repeat(1, 3, 1, 1)
    seen = augment(x, how, generator())
    torch.testing.assert_close(seen[:, 0], seen[:, 2])


@both
def test_memory_layout_does_not_matter(how):
    x = images(20)
    seen = augment(x.contiguous(memory_format=torch.channels_last), how, generator())
    torch.testing.assert_close(seen, augment(x, how, generator()))


@both
def test_the_generator_decides_alone(how):
    x = images(20)
    state = torch.get_rng_state()
    first = augment(x, how, generator(1))
    assert torch.equal(augment(x, how, generator(1)), first)
    assert not torch.equal(augment(x, how, generator(2)), first)
    assert torch.equal(torch.get_rng_state(), state)


def test_none_is_nothing():
    x = images()
    assert augment(x, "none", generator()) is x


@pytest.mark.parametrize("size", [(8, 8), (28, 28), (32, 32), (84, 84), (9, 14)])
def test_pad_is_every_whole_shift_of_the_reflected_image_and_its_mirror_image(size):
    height, width = size
    x = images(1, height, width, channels=2)
    padded = F.pad(x, (4, 4, 4, 4), mode="reflect")
    expected = {}
    for down in range(9):
        for right in range(9):
            shown = padded[0, :, down : down + height, right : right + width]
            expected[down, right, False] = shown
            expected[down, right, True] = shown.flip(-1)
    seen = augment(x.expand(2000, -1, -1, -1), "pad", generator())
    different = seen.flatten(1).unique(dim=0)
    allowed = torch.stack(list(expected.values())).flatten(1)
    together = torch.cat([different, allowed]).unique(dim=0)
    # Exactly these, bit for bit: 9 x 9 shifts and 2 sides, though in 8 pixels some coincide.
    assert len(different) == len(allowed.unique(dim=0)) == len(together)
    assert len(different) == 162 or size == (8, 8)


def test_pad_shifts_are_uniform_and_flips_are_even():
    x = torch.arange(28.0).expand(1, 28, 28)
    x = torch.stack([x, x.transpose(1, 2)], 1)  # columns in one channel, rows in the other
    n = 4000
    seen = augment(x.expand(n, -1, -1, -1), "pad", generator())
    middle, beside = seen[:, 0, 14, 13], seen[:, 0, 14, 14]
    flipped = beside < middle
    assert 0.47 < flipped.float().mean() < 0.53
    for shift in ((middle + beside - 27) / 2, seen[:, 1, 14, 14] - 14):
        counts = np.bincount((shift + 4).long().numpy(), minlength=9)
        assert len(counts) == 9
        assert scipy.stats.chisquare(counts).pvalue > 0.01


def measured_crops(size: int, n: int = 3000):
    """Where each crop lies: (x, y) scale and centre in -1..1, and whether it is flipped.

    Read off images whose values are their own coordinates, away from the border.
    """
    line = (torch.arange(size) + 0.5) * 2 / size - 1
    ys, xs = torch.meshgrid(line, line, indexing="ij")
    seen = augment(torch.stack([xs, ys]).expand(n, -1, -1, -1), "crop", generator())
    i = size // 4  # symmetric about the middle
    corner, opposite = seen[:, :, i, i], seen[:, :, -1 - i, -1 - i]
    scale = (opposite - corner) / (line[-1 - i] - line[i])
    return scale.abs().numpy(), ((corner + opposite) / 2).numpy(), (scale[:, 0] < 0).numpy()


@pytest.mark.parametrize("size", [28, 64])
def test_crops_are_of_0_2_to_1_of_the_area(size):
    scale, centre, flipped = measured_crops(size)
    area = scale.prod(1)
    assert area.min() > 0.2 - 1e-4
    assert area.max() < 1 + 1e-4
    # Uniform, but for crops of more than 3/4 of the area that are too long for the image.
    assert scipy.stats.kstest(area[area < 0.75], "uniform", args=(0.2, 0.55)).pvalue > 0.01
    assert (area < 0.6).mean() == pytest.approx(0.5, abs=0.03)
    assert area.max() > 0.97
    ratio = scale[:, 0] / scale[:, 1]
    assert ratio.min() > 3 / 4 - 1e-3
    assert ratio.max() < 4 / 3 + 1e-3
    assert abs(np.median(np.log(ratio))) < 0.03
    assert (np.abs(centre) <= 1 - scale + 1e-4).all()  # inside the image
    assert flipped.mean() == pytest.approx(0.5, abs=0.03)


def test_crops_lie_anywhere():
    scale, centre, _ = measured_crops(64)
    small = scale.max(1) < 0.8
    place = centre[small] / (1 - scale[small])
    for k in (0, 1):
        assert scipy.stats.kstest(place[:, k], "uniform", args=(-1, 2)).pvalue > 0.01


def test_crops_stand_upright():
    x = torch.arange(32.0).view(1, 1, 32, 1).expand(200, 1, 32, 32)  # brighter downwards
    seen = augment(x, "crop", generator())
    assert (seen.diff(dim=2) >= 0).all()
    torch.testing.assert_close(seen, seen[..., :1].expand_as(seen))
