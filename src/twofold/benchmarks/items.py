"""The items of torch datasets, read once into tensors, with error messages of one line."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twofold.errors import UserError
from twofold.options import shown

PLAIN = ("L", "RGB", "RGBA")  # the modes of PIL images that are plain channels


def read(name: str, tasks: Any) -> list[list[Tensor]]:
    """Return four tensors per task: training inputs and labels, test inputs and labels."""
    tasks = _list(tasks, f"benchmark {name!r} needs a list of tasks")
    found = []
    for number, task in enumerate(tasks, 1):
        place = f"benchmark {name!r}, task {number}"
        wanted = f"{place}: a task has two datasets, for training and for tests"
        pair = _list(task, wanted)
        if len(pair) != 2:
            raise UserError(f"{wanted}, not {len(pair)}")
        parts = zip(pair, ("training", "test"), strict=True)
        found.append([part for data, kind in parts for part in _read(data, f"{place}, {kind}")])
    return found


def _read(dataset: Any, place: str) -> tuple[Tensor, Tensor]:
    """Return the inputs and the labels of all items of a dataset."""
    inputs: list[Tensor] = []
    labels: list[int] = []
    for number, item in enumerate(_items(dataset, place)):
        where = f"{place} item {number}"
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise UserError(f"{where}: expected a pair of input and label, not {shown(item)}")
        inputs.append(_input(item[0], where))
        labels.append(_label(item[1], where))
        if (inputs[-1].shape, inputs[-1].dtype) != (inputs[0].shape, inputs[0].dtype):
            one, other = (f"{list(x.shape)} ({_kind(x)})" for x in (inputs[-1], inputs[0]))
            raise UserError(f"{where}: its input is of shape {one}, but that of item 0 is {other}")
    if not inputs:
        raise UserError(f"{place} data: the dataset is empty")
    return torch.stack(inputs), torch.tensor(labels)


def _items(dataset: Any, place: str) -> Iterator[Any]:
    """Yield the items in their order, or by number from a dataset that only has numbers."""
    try:
        if hasattr(dataset, "__iter__"):
            yield from dataset
        else:
            yield from (dataset[number] for number in range(len(dataset)))
    except UserError:
        raise
    except Exception as error:  # of the user's code
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"{place} data: the dataset cannot be read ({type(error).__name__}: {why})"
        ) from error


def _input(given: Any, where: str) -> Tensor:
    if hasattr(given, "convert") and hasattr(given, "mode"):  # a PIL image
        given = np.array(given if given.mode in PLAIN else given.convert("RGB"))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            x = torch.as_tensor(given).detach()
    except (TypeError, ValueError, RuntimeError):
        raise UserError(
            f"{where}: an input is a tensor, an array or a PIL image, not {shown(given)}"
        ) from None
    return x[..., None] if x.dtype == torch.uint8 and x.dim() == 2 else x  # one channel


def _label(given: Any, where: str) -> int:
    try:
        return operator.index(given.item() if hasattr(given, "item") else given)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{where}: a label is a whole number, not {shown(given)}") from None


def _list(given: Any, wanted: str) -> list[Any]:
    if not isinstance(given, Sequence):
        raise UserError(f"{wanted}, not {shown(given)}")
    return list(given)


def _kind(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")
