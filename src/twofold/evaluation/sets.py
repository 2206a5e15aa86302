"""Test sets of anyone's: tensors, a Dataset, a DataLoader, or a function of the model."""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
    default_collate,
)

from twofold.errors import UserError
from twofold.options import shown
from twofold.streams import sample, stream
from twofold.text import is_shown

LARGEST = 3e38  # curves have single precision

WHOLE = 1000  # examples at once, where a whole test set is evaluated
DIGESTED = 100  # examples of a Dataset that decide its digest: reading all may take minutes

Collate = Callable[[list[Any]], Any]


class Pair(NamedTuple):
    """Inputs and labels."""

    x: Tensor
    y: Tensor

    def to(self, device: torch.device) -> Pair:
        return Pair(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Measured:
    """A function of the model that returns a number, such as a reward or a perplexity."""

    name: str
    function: Callable[[Any], Any]

    def __call__(self, model: Any) -> float:
        value = self.function(model)
        if isinstance(value, Tensor | np.ndarray) and math.prod(value.shape) == 1:
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise UserError(f"the measure {self.name!r} must return a number, not {shown(value)}")
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            number = math.inf
        if not abs(number) <= LARGEST:  # NaN is not, either
            raise UserError(f"the measure {self.name!r} returned {number}, not a number up to 3e38")
        return number

    def digest(self) -> str:
        return "function"


class Examples:
    """A test set of inputs with labels, read row by row."""

    def __init__(self, name: str, source: Pair | Dataset[Any], rows: Any, collate: Collate) -> None:
        self.name, self._source, self._collate = name, source, collate
        self.rows: np.ndarray[Any, np.dtype[np.int64]] = np.asarray(rows, np.int64)
        if not len(self.rows):
            raise UserError(f"test set {name!r} has no examples")
        self.few = self.read(self.rows[:2])

    def read(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Pair:
        """Return these examples."""
        if isinstance(self._source, Pair):
            whole = len(rows) == len(self._source.y)  # in order: rows are drawn only from more
            at = torch.from_numpy(rows)
            return self._source if whole else Pair(*(p[at.to(p.device)] for p in self._source))
        try:
            batch = self._collate([self._source[int(row)] for row in rows])
        except (TypeError, RuntimeError) as error:
            raise UserError(
                f"test set {self.name!r} can't be read as tensors: {_first_line(error)}"
            ) from error
        return _pair(self.name, batch)

    def drawn(self, size: int, seed: int, place: int) -> Pair:
        """Return the examples that a run evaluates again and again: drawn once, or all."""
        return self.read(sample(self.rows, size, stream(seed, "evaluation", place)))

    def parts(self) -> Iterator[Pair]:
        """Yield all examples, some at a time."""
        for start in range(0, len(self.rows), WHOLE):
            yield self.read(self.rows[start : start + WHOLE])

    def digest(self) -> str:
        """Return a digest of all tensors, or of a Dataset's length and some of its examples."""
        rows = self.rows
        if not isinstance(self._source, Pair) and len(rows) > DIGESTED:
            rows = rows[np.linspace(0, len(rows) - 1, DIGESTED).astype(int)]
        sha = hashlib.sha256(f"{len(self.rows)}".encode())
        for tensor in self.read(rows):
            plain = tensor.detach().cpu().contiguous()
            sha.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
            sha.update(plain.reshape(-1).view(torch.uint8).numpy().data)
        return sha.hexdigest()


TestSet = Examples | Measured


def read_sets(given: Mapping[str, Any]) -> list[TestSet]:
    """Return the test sets of tasks in order, checked."""
    if not isinstance(given, Mapping) or not given:
        raise UserError('test sets are a mapping by name, such as {"0": test0, "80": test1}')
    names = [str(name) for name in given]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two test sets have the name {name!r}")
        if not is_shown(name):
            raise UserError(f"the name of a test set must be printable text, not {shown(name)}")
    sets = [_read(name, test) for name, test in zip(names, given.values(), strict=True)]
    examples = [each for each in sets if isinstance(each, Examples)]
    for each in examples[1:]:
        first, inputs = examples[0].few.x, each.few.x
        if inputs.shape[1:] != first.shape[1:] or inputs.dtype != first.dtype:
            raise UserError(
                f"test set {each.name!r} has inputs of shape {_kind(inputs)}, and "
                f"{examples[0].name!r} of shape {_kind(first)}"
            )
    return sets


def number_of(task: int | str, names: Sequence[str]) -> int:
    """Return the number of a task, from 1, by its number from 0 or the name of its test set."""
    if task in names:
        return names.index(str(task)) + 1
    if isinstance(task, bool) or not isinstance(task, int):
        raise UserError(f"a task is a number from 0, or one of {', '.join(names)}, not {task!r}")
    if not 0 <= task < len(names):
        raise UserError(f"there is no task {task}: test sets are those of {len(names)}")
    return task + 1


def digest_of(sets: Iterable[TestSet]) -> str:
    """Return a short digest of test sets, their names and their order."""
    text = "\n".join(f"{each.name} {each.digest()}" for each in sets)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _read(name: str, test: Any) -> TestSet:
    if isinstance(test, DataLoader):
        return _loaded(name, test)
    if isinstance(test, TensorDataset) and len(test.tensors) == 2:
        return _tensors(name, test.tensors)
    if isinstance(test, IterableDataset):
        return _loaded(name, DataLoader(test, batch_size=WHOLE))
    if isinstance(test, Dataset):
        return Examples(name, test, np.arange(_length(name, test)), default_collate)
    if isinstance(test, tuple | list) and len(test) == 2:
        return _tensors(name, test)
    if callable(test):
        return Measured(name, test)
    raise UserError(
        f"test set {name!r} must be two tensors, a Dataset, a DataLoader or a function of the "
        f"model, not {shown(test)}"
    )


def _tensors(name: str, parts: Sequence[Any]) -> Examples:
    try:
        pair = _pair(name, [torch.as_tensor(part) for part in parts])
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"test set {name!r} must be two tensors: {_first_line(error)}") from None
    return Examples(name, pair, np.arange(len(pair.y)), default_collate)


def _loaded(name: str, loader: DataLoader[Any]) -> Examples:
    """Read a loader's dataset by its rows; a stream of examples is kept whole."""
    if isinstance(loader.dataset, IterableDataset):
        batches = [_pair(name, batch) for batch in loader]
        if not batches:
            raise UserError(f"test set {name!r} has no examples")
        return _tensors(name, [torch.cat(part) for part in zip(*batches, strict=True)])
    rows: Iterable[int]
    if loader.batch_size is None and loader.batch_sampler is not None:  # one of the user's own
        rows = sorted(int(row) for batch in loader.batch_sampler for row in batch)
    elif isinstance(loader.sampler, DistributedSampler):  # one process evaluates for all
        rows = range(_length(name, loader.dataset))
    else:  # a sampler may choose some; a shuffled order makes no difference
        rows = sorted(map(int, loader.sampler))
    collate = loader.collate_fn if loader.batch_size is not None else default_collate
    source, rows = loader.dataset, list(rows)
    tensors = source.tensors if isinstance(source, TensorDataset) else ()
    if collate is default_collate and len(tensors) == 2 and rows == list(range(len(tensors[0]))):
        return _tensors(name, tensors)
    return Examples(name, source, rows, collate)


def _length(name: str, dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        raise UserError(f"test set {name!r} is a Dataset without a length") from None


def _pair(name: str, batch: Any) -> Pair:
    """Return inputs and labels, checked."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        description = (
            f"{len(batch)} parts" if isinstance(batch, tuple | list) else type(batch).__name__
        )
        raise UserError(
            f"test set {name!r}: an example is an input and a label, not {description}; "
            "for anything else, give a function of the model that returns a number"
        )
    x, y = batch
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise UserError(f"test set {name!r}: inputs and labels must be tensors")
    if y.dim() != 1 or y.is_floating_point():
        raise UserError(
            f"test set {name!r}: labels must be one whole number per example, not of shape "
            f"{_kind(y, 0)}; for other measures, give a function of the model"
        )
    if len(x) != len(y):
        raise UserError(f"test set {name!r} has {len(x)} inputs and {len(y)} labels")
    return Pair(x.detach(), y.detach())


def _kind(tensor: Tensor, start: int = 1) -> str:
    return f"{list(tensor.shape[start:])} ({str(tensor.dtype).removeprefix('torch.')})"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
