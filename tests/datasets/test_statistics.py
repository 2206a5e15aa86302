"""What images are whitened with."""

from __future__ import annotations

import numpy as np
from helpers.benchmarks import three_channel_images

from twofold.datasets.statistics import channel_statistics


def test_channel_statistics():
    images = three_channel_images(4500)  # more than one chunk
    mean, deviation = channel_statistics(images)
    pixels = images.double().view(-1, 3) / 255
    np.testing.assert_allclose(mean, pixels.mean(0), rtol=1e-6)
    np.testing.assert_allclose(deviation, pixels.std(0, unbiased=False), rtol=1e-5)
