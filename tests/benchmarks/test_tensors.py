"""Tensors of your own: what is wrong with them is stated, with the task."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from twofold import Benchmark, run
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
        ([(x(60).long(), y(60), x(30), y(30))], "task 1: test inputs are float32.* int64"),
        ([(x(60).long(), y(60), x(30).int(), y(30))], "task 1: test inputs are int32.* int64"),
        ([(x(60).to(torch.int8), y(60), x(30), y(30))], "task 1: training inputs are int8"),
        ([(x(60) > 0, y(60), x(30), y(30))], "task 1: training inputs are bool"),
        ([IMAGES, (images(60), y(60), x(30, 6, 5, 2), y(30))], "task 2: test inputs are float32"),
        ([GOOD, IMAGES], "task 2: training inputs are uint8.* float32"),
        ([(images(60, 6, 5), y(60), images(30, 6, 5), y(30))], r"task 1:.*\[N, H, W, C\].*6, 5"),
        ([GOOD, (x(60), y(60), x(30, 7), y(30))], r"task 2: test inputs.*\[7\].*\[8\]"),
        ([GOOD, GOOD[:3]], "task 2.*four tensors.* 3"),
        ([(x(60), y(60) * 1j, x(30), y(30))], "task 1: training labels.*not complex64"),
        (
            [(images(60, 0, 0, 3), y(60), images(30, 0, 0, 3), y(30))],
            r"task 1: training images of shape \[0, 0, 3\] have no pixels",
        ),
        ([GOOD, (x(60), y(60), x(30), y(30) + 1)], "task 2: a test label is 3, .* up to 2"),
    ],
)
def test_an_error_is_named_with_its_task(tasks, message):
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


def test_wrong_tensors_are_refused():
    x, y = torch.zeros(4, 2), torch.zeros(4)
    with pytest.raises(UserError, match="at least one task"):
        Benchmark.from_tensors("mine", [])
    with pytest.raises(UserError, match="4 training inputs, 3 labels"):
        Benchmark.from_tensors("mine", [(x, y[:3], x, y)])
    with pytest.raises(UserError, match="4 test inputs, 2 labels"):
        Benchmark.from_tensors("mine", [(x, y, x, y[:2])])


@pytest.mark.parametrize("shape", [(6, 5, 3), (28, 28, 1), (4, 4, 3), (3, 3, 1)])
def test_uint8_images_with_channels_first_are_the_same_images(shape):
    last = images(60, *shape)
    first = last.permute(0, 3, 1, 2)
    one, other = (
        Benchmark.from_tensors("mine", [(each, y(60), each[:30], y(30))]) for each in (last, first)
    )
    rows = np.arange(60)
    assert torch.equal(one.train.batch(rows).x, other.train.batch(rows).x)
    assert one.sizes().image == (shape[2], *shape[:2])


@pytest.mark.parametrize("shape", [(3, 8, 3), (4, 4, 4), (8, 8, 8), (12, 10, 7)])
def test_uint8_images_that_can_be_read_in_two_ways_are_refused(shape):
    part = images(60, *shape)
    with pytest.raises(UserError, match=r"task 1: uint8 images of shape .* or \[N, C, H, W\]"):
        Benchmark.from_tensors("mine", [(part, y(60), part, y(60))])
