"""Random crops and flips of a batch, as one operation on the device."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

Augmentation = Literal["crop", "pad", "none"]
PAD = 4


def augment(x: Tensor, how: Augmentation, random: np.random.Generator) -> Tensor:
    """Return a random crop of each image of x [N, C, H, W], flipped with probability 1/2.

    crop: a crop with 0.2 to 1.0 of the image's area and an aspect ratio between 3/4 and 4/3,
        resized bilinearly to the image's size (the paper's appendix B).
    pad: a crop of the image's size from the image padded by 4 reflected pixels (the authors' code,
        D7).
    """
    if how == "none":
        return x
    n, _, height, width = x.shape
    if how == "crop":
        scale, shift = _resized_crop(n, height, width, random)
    else:
        scale, shift = _padded_crop(n, height, width, random)
    scale[:, 0] *= random.choice([-1.0, 1.0], n)  # a negative scale reads from right to left
    theta = np.zeros((n, 2, 3), np.float32)
    theta[:, [0, 1], [0, 1]] = scale
    theta[:, :, 2] = shift
    align = how == "pad"  # so that images are reflected about the centres of the outermost pixels
    grid = F.affine_grid(torch.from_numpy(theta).to(x.device), list(x.shape), align_corners=align)
    mode, outside = ("nearest", "reflection") if how == "pad" else ("bilinear", "border")
    return F.grid_sample(x, grid, mode=mode, padding_mode=outside, align_corners=align)


Array = NDArray[np.float64]


def _resized_crop(
    n: int, height: int, width: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Return sizes and centres of crops as (x, y), in coordinates where the image spans -1..1."""
    area = random.uniform(0.2, 1.0, n)
    ratio = np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3), n)) * height / width
    scale = np.stack([np.sqrt(area * ratio), np.sqrt(area / ratio)], 1)
    scale = np.minimum(scale, 1.0)  # an elongated crop of nearly the whole area would not fit
    shift = random.uniform(-1, 1, (n, 2)) * (1 - scale)
    return scale, shift


def _padded_crop(
    n: int, height: int, width: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Return the same for shifts by whole pixels.

    With aligned corners, a pixel is 2 / (size - 1) wide.
    """
    pixels = random.integers(-PAD, PAD + 1, (n, 2))
    return np.ones((n, 2)), pixels * 2 / (np.array([width, height]) - 1)
