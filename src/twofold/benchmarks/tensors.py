"""Checks of a user's own tensors, task by task, with error messages of one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from twofold.datasets.statistics import Constants, channel_statistics
from twofold.errors import UserError
from twofold.options import shown

CHANNELS = range(1, 5)  # of uint8 images
Parts = tuple[Tensor, Tensor, Tensor, Tensor]  # training inputs and labels, test inputs and labels


def checked(name: str, tasks: Sequence[Sequence[Tensor]]) -> list[Parts]:
    """Return the tasks, with inputs of the same type: uint8 images or float32."""
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
        x_train, x_test = (_usual(x, place) for x in (x_train, x_test))
        first = x_train if first is None else first
        for x, y, part in ((x_train, y_train, "training"), (x_test, y_test, "test")):
            wrong = _wrong(x, y, part) or _unlike(x, first, part)
            if wrong is not None:
                raise UserError(f"{place}: {wrong}")
        parts_of_tasks.append((x_train, y_train.long(), x_test, y_test.long()))
    return parts_of_tasks


def _list(given: Any, wanted: str) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise UserError(f"{wanted}, not {shown(given)}") from None


def _tensor(given: Any, where: str) -> Tensor:
    """Return a tensor with its numbers in memory, one after the other."""
    try:
        tensor = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{where}: expected a tensor of numbers, not {shown(given)}") from None
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_meta:
        kind = "nested" if tensor.is_nested else "meta" if tensor.is_meta else "sparse"
        raise UserError(f"{where}: expected a plain tensor, not a {kind} one")
    if tensor.dim() == 0:
        raise UserError(f"{where}: expected a tensor with a row per example, not a single number")
    return tensor


def _usual(x: Tensor, where: str) -> Tensor:
    """Return inputs as float32, or uint8 images as [N, H, W, C]."""
    if x.dtype != torch.uint8 or x.dim() != 4:
        return x.float() if x.is_floating_point() else x
    _, one, two, three = x.shape
    last, first = three in CHANNELS, one in CHANNELS
    if last and first and one != two == three:  # small images, which are mostly square
        last = False
    elif last and first and one == two != three:
        first = False
    if last == first:
        raise UserError(
            f"{where}: uint8 images of shape {list(x.shape)} may be [N, H, W, C] or [N, C, H, W], "
            "with 1 to 4 channels: give floating-point inputs, which are used as they are"
        )
    return x if last else x.permute(0, 2, 3, 1).contiguous()


def _wrong(x: Tensor, y: Tensor, part: str) -> str | None:
    """Return what is wrong with the inputs and labels of one part; None if nothing is."""
    if y.dim() != 1:
        return f"{part} labels must be one number an example, not of shape {list(y.shape)}"
    if len(x) != len(y):
        return f"{len(x)} {part} inputs, {len(y)} labels"
    if len(y) == 0:
        return f"no {part} examples"
    wrong = y[(y < 0) | (y != y.long())]
    if len(wrong):
        return f"{part} labels must be whole numbers from 0 on, not {wrong[0].item():g}"
    if x.dtype not in (torch.uint8, torch.float32):
        return f"{part} inputs are {_kind(x)}; they must be uint8 images or floating-point numbers"
    if x.dtype == torch.uint8 and x.dim() != 4:
        return f"uint8 {part} inputs must be images [N, H, W, C], not of shape {list(x.shape)}"
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


def own_whitening(images: Tensor) -> Constants:
    """Return the statistics of the images, with a deviation of 1 for a constant channel."""
    mean, deviation = channel_statistics(images)
    pixels = images.flatten(0, -2)
    constant = (pixels.amin(0) == pixels.amax(0)).tolist()
    # Rounding can turn a deviation near 0 into NaN, which fails `d > 0` and becomes 1 as well.
    kept = [d if d > 0 and not same else 1.0 for d, same in zip(deviation, constant, strict=True)]
    return mean, tuple(kept)
