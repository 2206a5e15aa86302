"""Checks of a user's own tensors, task by task, with error messages of one line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from twofold.benchmarks.maps import Mapped
from twofold.datasets.statistics import Constants, channel_statistics
from twofold.errors import UserError
from twofold.options import shown

CHANNELS = range(1, 5)  # of uint8 images
Parts = tuple[Tensor, Tensor, Tensor, Tensor]  # training inputs and labels, test inputs and labels


UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # which torch compares with nothing
TOKENS = (torch.int16, torch.int32, torch.int64)  # whole numbers, which reach a network as int64


def checked(name: str, tasks: Sequence[Sequence[Tensor]]) -> list[Parts]:
    """Return the tasks as tensors whose rows `as_inputs` reads."""
    tasks = _list(tasks, f"benchmark {name!r} needs a list of tasks")
    if not tasks:
        raise UserError(f"benchmark {name!r} needs at least one task")
    parts_of_tasks: list[Parts] = []
    first: Tensor | None = None
    for number, task in enumerate(tasks, 1):
        place = f"benchmark {name!r}, task {number}"
        expectation = (
            f"{place}: a task has four tensors, training inputs and labels, then test inputs and "
            "labels"
        )
        parts = _list(task, expectation)
        if len(parts) != 4:
            raise UserError(f"{expectation}, not {len(parts)}")
        x_train, y_train, x_test, y_test = (_tensor(part, place) for part in parts)
        for x, y, part in ((x_train, y_train, "training"), (x_test, y_test, "test")):
            few = as_inputs(x[:1], place)  # of a map, the other rows are not read
            first = few if first is None else first
            wrong = _wrong(len(x), few, y, part) or _unlike(few, first, part)
            if wrong is not None:
                raise UserError(f"{place}: {wrong}")
        parts_of_tasks.append((x_train, y_train.long(), x_test, y_test.long()))
    _check_test_labels(name, parts_of_tasks)
    return parts_of_tasks


def _check_test_labels(name: str, tasks: Sequence[Parts]) -> None:
    """Refuse test labels that no task is trained on, and for which a network has no output."""
    largest = max(int(y_train.max()) for _, y_train, _, _ in tasks)
    for number, (_, _, _, y_test) in enumerate(tasks, 1):
        if y_test.max() > largest:
            raise UserError(
                f"benchmark {name!r}, task {number}: a test label is {int(y_test.max())}, but "
                f"training labels go up to {largest}"
            )


def _list(given: Any, wanted: str) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise UserError(f"{wanted}, not {shown(given)}") from None


def _tensor(given: Any, where: str) -> Tensor:
    """Return a tensor with its numbers in memory, one after the other."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            tensor = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{where}: expected a tensor of numbers, not {shown(given)}") from None
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_meta:
        kind = "nested" if tensor.is_nested else "meta" if tensor.is_meta else "sparse"
        raise UserError(f"{where}: expected a plain tensor, not a {kind} one")
    if tensor.dim() == 0:
        raise UserError(f"{where}: expected a tensor with a row per example, not a single number")
    return tensor


def as_inputs(x: Tensor, where: str = "inputs") -> Tensor:
    """Return inputs as float32, uint8 images as [N, H, W, C], and anything else unchanged."""
    if x.dtype != torch.uint8 or x.dim() != 4:
        return x.float() if x.is_floating_point() else x
    _, one, two, three = x.shape
    last, first = three in CHANNELS, one in CHANNELS
    if last and first and one != two == three:  # small images, which are mostly square
        last = False
    elif last and first and one == two != three:
        first = False
    if last == first:
        shape = ", ".join(["N", *map(str, x.shape[1:])])
        raise UserError(
            f"{where}: uint8 images of shape [{shape}] may be [N, H, W, C] or [N, C, H, W], "
            "with 1 to 4 channels: give floating-point inputs, which are used as they are"
        )
    return x if last else x.permute(0, 2, 3, 1).contiguous()


def _wrong(count: int, few: Tensor, y: Tensor, part: str) -> str | None:
    """Return what is wrong with the inputs and labels of one part; None if nothing is.

    count: the number of inputs, of which there are a `few`.
    """
    if y.dim() != 1:
        return f"{part} labels must be one number an example, not of shape {list(y.shape)}"
    if count != len(y):
        return f"{count} {part} inputs, {len(y)} labels"
    if len(y) == 0:
        return f"no {part} examples"
    if y.is_complex():
        return f"{part} labels must be whole numbers from 0 on, not {_kind(y)}"
    numbers = y.long() if y.dtype in UNSIGNED else y
    wrong = numbers[(numbers < 0) | (numbers != numbers.long())]
    if len(wrong):
        return f"{part} labels must be whole numbers from 0 on, not {wrong[0].item():g}"
    if few.dtype not in (torch.uint8, torch.float32, *TOKENS):
        return (
            f"{part} inputs are {_kind(few)}; they must be uint8 images, floating-point numbers or "
            "tokens (int64)"
        )
    if few.dtype == torch.uint8 and few.dim() != 4:
        shape = [count, *few.shape[1:]]
        return (
            f"uint8 {part} inputs must be images [N, H, W, C], not of shape {shape}; tokens are "
            "int64"
        )
    if few.dtype == torch.uint8 and few[0].numel() == 0:
        return f"{part} images of shape {list(few.shape[1:])} have no pixels"
    return None


def _unlike(x: Tensor, first: Tensor, part: str) -> str | None:
    """Return how inputs differ from the first task's training inputs; None if they do not."""
    if x.dtype != first.dtype:
        return f"{part} inputs are {_kind(x)}, but task 1 is trained on {_kind(first)}"
    if x.shape[1:] != first.shape[1:]:
        one, other = list(x.shape[1:]), list(first.shape[1:])
        return f"{part} inputs are of shape {one}, but task 1 is trained on {other}"
    return None


def _kind(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def own_whitening(images: Tensor | Mapped) -> Constants:
    """Return the statistics of the images, with a deviation of 1 for a constant channel."""
    mean, deviation = channel_statistics(images)
    ends = [chunk.flatten(0, -2).aminmax(dim=0) for chunk in images.split(2000)]
    lowest = torch.stack([each.min for each in ends]).amin(0)
    highest = torch.stack([each.max for each in ends]).amax(0)
    constant = (lowest == highest).tolist()
    # Rounding can turn a deviation near 0 into NaN, which fails `d > 0` and becomes 1 as well.
    kept = [d if d > 0 and not same else 1.0 for d, same in zip(deviation, constant, strict=True)]
    return mean, tuple(kept)
