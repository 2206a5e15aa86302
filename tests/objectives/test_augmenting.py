"""Objectives that augment images in training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from torch import Tensor

from twofold import Benchmark, run
from twofold.errors import UserError
from twofold.objectives.bic import Bic
from twofold.objectives.der import Der
from twofold.objectives.er import Er
from twofold.objectives.finetune import Finetune
from twofold.objectives.joint import Joint


def x(count: int, *shape: int) -> Tensor:
    return torch.randn(count, *(shape or (8,)), generator=torch.Generator().manual_seed(count))


def y(count: int) -> Tensor:
    return torch.arange(count) % 3


GOOD = (x(60), y(60), x(30), y(30))


@pytest.mark.parametrize(
    "method", ["der(augment=crop)", "bic(augment=crop)", "bic(augment=pad)+agem"]
)
def test_what_is_no_image_is_not_augmented(method):
    tasks = [GOOD, (x(60), y(60) + 3, x(30), y(30) + 3)]
    benchmark = Benchmark.from_tensors("mine", tasks)
    name = method[:3]
    message = rf"{name} augments images, and 'mine' has .*\[8\]: write {name}\(augment=none\)"
    with pytest.raises(UserError, match=message):
        run(benchmark, method, batch_size=10, iterations=2)
    assert run(benchmark, f"{name}(augment=none)", batch_size=10, iterations=2)


@pytest.mark.parametrize("objective", [Der, Bic])
def test_der_and_bic_augment_what_is_forwarded_and_nothing_else(objective):
    batch = class_benchmark().train.batch(np.arange(10))
    seen = objective(augment="crop").augmented(batch, np.random.default_rng(0))
    assert seen.x.shape == batch.x.shape
    assert not torch.equal(seen.x, batch.x)
    assert seen.y is batch.y
    assert seen.rows is batch.rows
    same = objective(augment="none").augmented(batch, np.random.default_rng(0))
    assert torch.equal(same.x, batch.x)


@pytest.mark.parametrize("objective", [Er, Finetune, Joint])
def test_the_others_use_no_augmentation(objective):
    batch = class_benchmark().train.batch(np.arange(10))
    assert objective().augmented(batch, np.random.default_rng(0)) is batch
